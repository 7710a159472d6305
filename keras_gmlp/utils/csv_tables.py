"""CSV and TSV files."""

import csv
import io

from keras_gmlp.utils.errors import printable, refuse_nul
from keras_gmlp.utils.files import atomic_write
from keras_gmlp.utils.inputs import TABLES


def write_table(path, rows, lineterminator="\n"):
    """Writes rows, the head first, as a CSV file, complete or not at all.

    A spreadsheet would compute a text such as `=cmd()`; an apostrophe keeps it a text.
    """
    with (
        atomic_write(path) as temporary,
        # File names that are not UTF-8 keep their bytes.
        open(temporary, "w", encoding="utf-8", errors="surrogateescape", newline="") as file,
    ):
        writer = csv.writer(file, lineterminator=lineterminator)
        writer.writerows([as_plain_cell(value) for value in row] for row in rows)


def write_dicts(path, columns, rows):
    """Writes rows, dicts, as a CSV file with some columns; see `write_table`."""
    write_table(path, [columns, *([row.get(name) for name in columns] for row in rows)], "\r\n")


def read_rows(path):
    """Reads the rows of a CSV or TSV file: column names, and for each row its line and a dict."""
    content, delimiter = read_text(path), TABLES[path.suffix.lower()]
    is_tsv = delimiter == "\t"  # its quotes are part of a text, unless they enclose it
    if not is_tsv:  # spreadsheets write semicolons where the comma is the decimal sign, or tabs
        delimiter = max(",;\t", key=content.partition("\n")[0].count)
    quoting = csv.QUOTE_NONE if is_tsv else csv.QUOTE_MINIMAL
    form = {"quoting": quoting, "strict": True, "skipinitialspace": True}
    limit, line, rows = csv.field_size_limit(2**31 - 1), 1, []
    try:
        reader = csv.reader(io.StringIO(content, newline=""), delimiter=delimiter, **form)
        for values in reader:
            if values:
                values = map(_unquoted, values) if is_tsv else values
                rows.append((f"line {reader.line_num}", list(values)))
            line = reader.line_num + 1
    except csv.Error as error:
        raise ValueError(
            f"{path}, line {line}: a quote without its other half ({error}). Close it, or write a "
            "quote inside a text twice, in quotes."
        ) from None
    finally:
        csv.field_size_limit(limit)
    names = [name.strip() for name in rows.pop(0)[1]] if rows else []
    repeated = [name for place, name in enumerate(names) if name and name in names[:place]]
    if repeated:
        raise ValueError(
            f"{path}: the column {printable(repeated[0])} is there twice; rename or remove one."
        )
    for place, values in rows:
        if len(values) != len(names):
            raise ValueError(
                f"{path}, {place}: expected {len(names)} columns ({printable(', '.join(names))}); "
                f"received {len(values)}. Quote texts that contain the separator."
            )
    return names, [(place, dict(zip(names, values, strict=True))) for place, values in rows]


def find_column(path, names, wanted):
    """Returns the column of a name in any case, or `None`; two of them are an error."""
    found = [name for name in names if name.lower() == wanted]
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


def read_text(path):
    """Returns the text of a UTF-8 file."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise ValueError(f"{path}: a device or a pipe, which may be endless; give a file.")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror}).") from None
    return decode_text(content, path)


def decode_text(content, place):
    """Returns the text of a file's bytes in UTF-8."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{place}: not UTF-8 in line {line} (byte 0x{content[error.start]:02x}); save it as "
            "UTF-8."
        ) from None
    refuse_nul(text, place)
    return text


def _unquoted(value):
    inner = value[1:-1].replace('""', "")
    enclosed = len(value) > 1 and value[0] == value[-1] == '"' and '"' not in inner
    return value[1:-1].replace('""', '"') if enclosed else value
