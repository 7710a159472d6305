#!/usr/bin/env python3
"""Checks pictures in a folder or a table: unreadable files, duplicates, classes, wrong labels."""

from start import start

if __name__ == "__main__":
    start("check_data")
