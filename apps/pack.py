#!/usr/bin/env python3
"""Writes a data set once, scaled, so that training decodes nothing."""

from start import start

if __name__ == "__main__":
    start("pack")
