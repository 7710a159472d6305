#!/usr/bin/env python3
"""Converts published weights into a Keras model, or a trained model into a file for timm."""

from start import start

if __name__ == "__main__":
    start("convert")
