"""CSV and TSV files as people and spreadsheets write them."""

import pytest
from refused import refused

from keras_gmlp.utils.tables import read_rows


def rows(path):
    names, found = read_rows(path)
    return [tuple(row[name] for name in names) for _, row in found]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "text,label\na,1\nb,2\n"),
        ("a.CSV", "\ufefftext,label\r\na,1\r\n\r\nb,2"),
        ("a.csv", "text;label\na;1\nb;2\n"),
        ("a.csv", 'text, label\na, "1"\n"b", 2\n'),
        ("a.csv", 'text; "label"\n"a"; 1\nb;  "2"\n'),
        ("a.csv", "text\tlabel\na\t1\nb\t2\n"),
        ("a.TSV", "text\tlabel\na\t1\nb\t2\n"),
    ],
)
def test_forms_of_one_table(tmp_path, name, content):
    path = tmp_path / name
    path.write_text(content, "utf-8", newline="")
    assert rows(path) == [("a", "1"), ("b", "2")]


def test_texts_with_quotes_and_lines_stay(tmp_path):
    texts = ['an inch "', "one, two\nthree, yes\r\nfour", 'he said "no"', "5\" or 6'", "a\n\nb"]
    quoted = [f'"{text.replace(chr(34), chr(34) * 2)}"' for text in texts]
    (tmp_path / "a.csv").write_text(
        "text, label\n" + "".join(f"{text}, {n}\n" for n, text in enumerate(quoted)), newline=""
    )
    assert [text for text, _ in rows(tmp_path / "a.csv")] == texts
    (tmp_path / "a.tsv").write_text('text\tlabel\n"an inch "\t1\n', newline="")
    assert rows(tmp_path / "a.tsv") == [('"an inch "', "1")]


def test_stray_quote_names_its_line(tmp_path):
    (tmp_path / "a.csv").write_text('text,label\na,1\n"b,2\nc,3\n')
    with refused(r"a\.csv, line 3: .*quote"):
        read_rows(tmp_path / "a.csv")


def test_columns_without_a_name(tmp_path):
    (tmp_path / "a.csv").write_text("text,label,,\na,b,,\n")
    assert read_rows(tmp_path / "a.csv")[1][0][1] == {"text": "a", "label": "b", "": ""}
