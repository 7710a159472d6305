#!/usr/bin/env python3
"""Trains a model on a data set, shows the progress, and leaves everything in one folder."""

from start import start

if __name__ == "__main__":
    start("train")
