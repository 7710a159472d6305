#!/usr/bin/env python3
"""Fills in [MASK]: prints the most probable words for each mask of a text."""

from start import start

if __name__ == "__main__":
    start("fill_mask")
