#!/usr/bin/env python3
"""Trains many models under one recipe and compares them: a table and charts."""

from start import start

if __name__ == "__main__":
    start("compare")
