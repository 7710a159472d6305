#!/usr/bin/env python3
"""Draws what a trained model has learned: filters, attention, class maps, confusion, mistakes."""

from start import start

if __name__ == "__main__":
    start("visualize")
