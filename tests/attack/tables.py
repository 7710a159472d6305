"""Tables of labelled texts: CSV, TSV and JSON lines."""

import csv
import io
import json

from attack.kinds import Cases, SilentLossError
from attack.mutations import mutate, mutate_json
from keras_gmlp.data.text.labelled_texts import load_text

TEXTS = (
    *("good", "a bad film", "he said 'no'", 'an inch "', '"', '""', "a, b; c", "a\tb"),
    "tối パンダ",
    *("=cmd()", "1.0", "a\nb", "a\r\nb", "\u202ex", "\x00", "x" * 2000, "[SEP]", "sep=;"),
)

PLAIN = [text for text in TEXTS if not set(text) & set('",\n\r\t\x00')]


class Tables(Cases):
    """Each case is a table with odd texts, whole, with a stray quote, or damaged."""

    def make(self, rng, folder):
        form, whole = rng.choice(("csv", "tsv", "jsonl")), rng.random() < 0.3
        path = folder / f"table.{form}"
        stray = form == "csv" and not whole and rng.random() < 0.5
        texts = PLAIN if form == "tsv" or stray else TEXTS
        if whole or form == "csv":  # a NUL is refused
            texts = [text for text in texts if text != "\x00"]
        rows = [(rng.choice(texts), rng.choice("ab")) for _ in range(rng.randrange(8, 40))]
        rows += [("first", "a"), ("last", "a"), ("first", "b"), ("last", "b")]
        data = write(form, rows).encode()
        if stray:
            place = rng.choice([n for n, byte in enumerate(data) if byte in b",\n"])
            data = data[:place] + b'"' + data[place:]
        elif not whole and form == "jsonl" and rng.random() < 0.5:
            rows = mutate_json([{"text": text, "label": label} for text, label in rows], rng)
            data = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
        elif not whole:
            data = mutate(data, rng)
        path.write_bytes(data)
        return path, whole, rows if whole else (len(rows) if stray else None)

    def check(self, case):
        path, whole, expected = case
        try:
            found = load_text(path)
        except ValueError:
            assert not whole, "a good table is refused"
            raise
        rows = [
            (text, found.labels[label])
            for split in (found.train, found.test)
            for text, label in zip(split.texts, split.labels, strict=True)
        ]
        count = expected if expected is None or isinstance(expected, int) else len(expected)
        if count not in (None, len(rows)):
            raise SilentLossError(f"{len(rows)} rows of {count}")
        if whole and sorted(rows) != sorted(expected):
            raise SilentLossError("other rows")


def write(form, rows):
    """Returns a table as text."""
    objects = [{"text": text, "label": label} for text, label in rows]
    if form == "jsonl":
        return "".join(f"{json.dumps(entry)}\n" for entry in objects)
    if form == "tsv":
        return "".join("\t".join(row) + "\n" for row in (("text", "label"), *rows))
    file = io.StringIO(newline="")
    csv.writer(file).writerows((("text", "label"), *rows))
    return file.getvalue()
