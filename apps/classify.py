#!/usr/bin/env python3
"""Classifies images: prints the most probable classes of each, or all labels that apply."""

from start import start

if __name__ == "__main__":
    start("classify")
