"""CSV and TSV files."""

import csv
import io

from keras_gmlp.utils.errors import printable
from keras_gmlp.utils.files import atomic_write

TABLES = {".csv": ",", ".tsv": "\t"}


def write_table(path, rows, lineterminator="\n"):
    """Writes rows, the head first, as a CSV file, complete or not at all."""
    with (
        atomic_write(path) as temporary,
        # File names that are not UTF-8 keep their bytes.
        open(temporary, "w", encoding="utf-8", errors="surrogateescape", newline="") as file,
    ):
        csv.writer(file, lineterminator=lineterminator).writerows(rows)


def read_rows(path):
    """Reads the rows of a CSV or TSV file."""
    content, delimiter = read_text(path), TABLES[path.suffix.lower()]
    head = content.split("\n", 1)[0]
    if delimiter == "," and head.count(";") > head.count(","):
        delimiter = ";"  # as spreadsheets write it where the comma is the decimal sign
    tab = delimiter == "\t"  # quotes in a TSV are part of the text, unless they enclose it
    quoting = csv.QUOTE_NONE if tab else csv.QUOTE_MINIMAL
    limit = csv.field_size_limit(2**31 - 1)
    try:
        reader = csv.reader(io.StringIO(content, newline=""), delimiter=delimiter, quoting=quoting)
        names = next(filter(None, reader), [])
        names = [name.strip().strip('"') for name in names]
        rows = []
        for values in reader:
            if not values:
                continue
            if len(values) != len(names):
                raise ValueError(
                    f"{path}, line {reader.line_num}: expected {len(names)} columns "
                    f"({printable(', '.join(names))}); received {len(values)}. Quote texts that "
                    "contain the separator."
                )
            values = map(_unquoted, values) if tab else values
            rows.append((f"line {reader.line_num}", dict(zip(names, values, strict=True))))
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num}: {error}.") from None
    finally:
        csv.field_size_limit(limit)
    return names, rows


def read_text(path):
    """Returns the text of a UTF-8 file."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror}).") from None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{path}: not UTF-8 in line {line} (byte 0x{content[error.start]:02x}); save it as "
            "UTF-8."
        ) from None


def _unquoted(value):
    inner = value[1:-1].replace('""', "")
    enclosed = len(value) > 1 and value[0] == value[-1] == '"' and '"' not in inner
    return value[1:-1].replace('""', '"') if enclosed else value
