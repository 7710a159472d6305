#!/usr/bin/env python3
"""Finds the images in a folder that are most similar to another image."""

from start import start

if __name__ == "__main__":
    start("similar")
