"""Tables that a program wrote."""

import csv


def read_table(path):
    """Returns the rows of a CSV file, dicts."""
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
