"""Attacks the library with seeded odd files, folders, kills and clients; `make attack` runs it.

`python -m attack --help`, in tests/, lists the options.
"""
