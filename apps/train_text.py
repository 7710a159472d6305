#!/usr/bin/env python3
"""Trains language models, text classifiers and models for questions, each in one folder."""

from start import start

if __name__ == "__main__":
    start("train_text")
