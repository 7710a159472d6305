#!/usr/bin/env python3
"""Calibrates a run: a temperature for its probabilities, and a threshold for unknown pictures."""

from start import start

if __name__ == "__main__":
    start("calibrate")
