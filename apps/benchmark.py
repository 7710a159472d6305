#!/usr/bin/env python3
"""Measures how fast a model runs in Keras, as an export, and in timm."""

from start import start

if __name__ == "__main__":
    start("benchmark")
