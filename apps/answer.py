#!/usr/bin/env python3
"""Answers questions about a text: prints the parts of the text that answer each."""

from start import start

if __name__ == "__main__":
    start("answer")
