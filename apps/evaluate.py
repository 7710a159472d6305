#!/usr/bin/env python3
"""Evaluates models of any format on a folder or table of images, or a data set."""

from start import start

if __name__ == "__main__":
    start("evaluate")
