#!/usr/bin/env python3
"""Evaluates a trained model at other image sizes, without further training."""

from start import start

if __name__ == "__main__":
    start("evaluate_sizes")
