"""Attacks the library with seeded odd files and kills; `make attack` runs it."""
