#!/usr/bin/env python3
"""Evaluates text models of any format on labelled texts, questions or plain text."""

from start import start

if __name__ == "__main__":
    start("evaluate_text")
