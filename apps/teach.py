#!/usr/bin/env python3
"""Stores a teacher's answers to fixed views of the training images, for distillation."""

from start import start

if __name__ == "__main__":
    start("teach")
