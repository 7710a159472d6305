"""Tables: CSV and TSV files, and Markdown."""

import csv
import itertools

from keras_gmlp.utils.errors import printable
from keras_gmlp.utils.files import atomic_write
from keras_gmlp.utils.inputs import TABLES
from keras_gmlp.utils.text_files import read_lines


def write_table(path, rows):
    """Writes rows, the head first, as a CSV file, complete or not at all.

    A spreadsheet would compute a text such as `=cmd()`; an apostrophe keeps it a text.
    """
    with (
        atomic_write(path) as temporary,
        # File names that are not UTF-8 keep their bytes.
        open(temporary, "w", encoding="utf-8", errors="surrogateescape", newline="") as file,
    ):
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([as_plain_cell(value) for value in row] for row in rows)


def read_rows(path):
    """Reads the rows of a CSV or TSV file: column names, and for each row its line and a dict."""
    delimiter, lines = TABLES[path.suffix.lower()], read_lines(path, keep_ends=True)
    form = {"quoting": csv.QUOTE_NONE, "skipinitialspace": True}  # quotes in a TSV are text
    if delimiter != "\t":  # spreadsheets write semicolons where the comma is the decimal sign
        head = next(lines, "")
        delimiter, lines = max(",;\t", key=head.count), itertools.chain([head], lines)
        form |= {"quoting": csv.QUOTE_MINIMAL, "strict": True}
    reader, rows, line = csv.reader(lines, delimiter=delimiter, **form), [], 1
    limit = csv.field_size_limit(2**31 - 1)
    try:
        for values in reader:
            if values:
                rows.append((f"line {reader.line_num}", values))
            line = reader.line_num + 1
    except csv.Error as error:
        raise ValueError(
            f"{path}, line {line}: {error}; is a quote without its other half?"
        ) from None
    finally:
        csv.field_size_limit(limit)
    names = [name.strip() for name in rows.pop(0)[1]] if rows else []
    for place, values in rows:
        if len(values) != len(names):
            raise ValueError(
                f"{path}, {place}: expected {len(names)} columns ({printable(', '.join(names))}); "
                f"received {len(values)}. Quote texts that contain the separator."
            )
    return names, [(place, dict(zip(names, values, strict=True))) for place, values in rows]


def find_column(path, names, wanted):
    """Returns the column of a name in any case, or `None`; two of them are an error."""
    found = [name for name in names if name.lower() == wanted.lower()]
    if len(found) > 1:
        raise ValueError(f"{path}: columns {' and '.join(found)}; rename or remove one.")
    return found[0] if found else None


def as_plain_cell(value):
    """Returns a value as a spreadsheet shows it, and does not compute it."""
    text = str(value)
    if text.startswith(("=", "+", "-", "@", "\t", "\r")):
        try:
            float(text)
        except ValueError:
            return f"'{text}"
    return value


def make_table(head, rows, numbers=()):
    """Returns the lines of a Markdown table of texts; columns `numbers` align to the right."""
    rule = ["---:" if place in numbers else "---" for place in range(len(head))]
    return [f"| {' | '.join(cells)} |" for cells in (head, rule, *rows)]
