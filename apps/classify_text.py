#!/usr/bin/env python3
"""Classifies texts, or pairs of texts: prints the most probable classes of each."""

from start import start

if __name__ == "__main__":
    start("classify_text")
