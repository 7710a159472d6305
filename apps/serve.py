#!/usr/bin/env python3
"""Serves a page that classifies pictures and texts in the visitor's browser."""

from start import start

if __name__ == "__main__":
    start("serve")
