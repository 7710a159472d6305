"""CSV and TSV files as people and spreadsheets write them."""

import pytest
from refused import refused

from keras_gmlp.utils.csv_tables import read_rows


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
        ("a.tsv", 'text\t "label"\n"a"\t 1\n b\t"2"\n'),
        ("a.csv", "text\tlabel\na\t1\nb\t2\n"),
        ("a.TSV", "text\tlabel\na\t1\nb\t2\n"),
    ],
)
def test_forms_of_one_table(tmp_path, name, content):
    path = tmp_path / name
    path.write_text(content, "utf-8", newline="")
    assert rows(path) == [("a", "1"), ("b", "2")]


def test_texts_with_quotes_and_lines_stay(tmp_path):
    texts = ['an inch "', "one, two\nthree, yes\nfour", 'he said "no"', "5\" or 6'", "a\nb"] * 3
    quoted = [f'"{text.replace(chr(34), chr(34) * 2)}"' for text in texts]
    (tmp_path / "a.csv").write_text(
        "text,label\n" + "".join(f"{text},{n % 2}\n" for n, text in enumerate(quoted))
    )
    assert [text for text, _ in rows(tmp_path / "a.csv")] == texts


def test_text_with_a_comma_after_a_space(tmp_path):
    (tmp_path / "a.csv").write_text('label, text\nneg, "one, two"\npos, "three ""four"""\n')
    assert rows(tmp_path / "a.csv") == [("neg", "one, two"), ("pos", 'three "four"')]


def test_stray_quote_names_its_line(tmp_path):
    (tmp_path / "a.csv").write_text('text,label\na,1\n"b,2\nc,3\n')
    with refused(r"a\.csv, line 3: a quote"):
        read_rows(tmp_path / "a.csv")


def test_repeated_columns_are_refused_unless_they_have_no_name(tmp_path):
    (tmp_path / "a.csv").write_text("text,label,text\na,b,c\n")
    with refused("twice", tmp_path / "a.csv"):
        read_rows(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_text("text,label,,\na,b,,\n")
    assert read_rows(tmp_path / "a.csv")[1][0][1] == {"text": "a", "label": "b", "": ""}
