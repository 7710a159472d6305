#!/usr/bin/env python3
"""Exports a trained model to files for deployment, and checks each on test images."""

from start import start

if __name__ == "__main__":
    start("export")
