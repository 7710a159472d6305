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
        ("a.csv", "sep=;\r\ntext;label\r\na;1\r\nb;2\r\n"),
        ("a.csv", "text\tlabel\na\t1\nb\t2\n"),
        ("a.csv", '"text","label"\n"a","1"\n"b","2"\n'),
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


def stray(head, at):
    """A table of 40 rows with stray quotes, by the row: before its text, or after it for -row."""
    text = [f"{chr(34) * (n in at)}text {n}{chr(34) * (-n in at)}" for n in range(40)]
    cells = [(text[n], n % 2) if head == "text,label" else (n % 2, text[n]) for n in range(40)]
    return "\n".join([head, *(f"{a},{b}" for a, b in cells)])


@pytest.mark.parametrize("head", ["text,label", "label,text"])
@pytest.mark.parametrize("at", [(10,), (10, 20), (10, -20), (10, -11)])
def test_stray_quotes_lose_no_rows(tmp_path, head, at):
    (tmp_path / "a.csv").write_text(stray(head, at))
    with refused(r"a\.csv, line 12: a quote"):
        read_rows(tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("head", "rows", "line"),
    [
        ("id,text,label", ['1,"x,a', '2,y",b', "3,z,a", "4,x,a", "5,z,b", "6,x,b"], 2),
        ("text,label", ['"x,a', "y,b", "z,a", "x,b", 'first",a', "last,a", "first,b"], 2),  # 3 rows
        ("text,label", ['x,a\r"', "y,b\r", 'z",b\r', "x,a\r", "y,b\r", "z,a\r", "x,b\r"], 3),
    ],
)
def test_stray_quotes_between_two_rows_lose_none(tmp_path, head, rows, line):
    (tmp_path / "a.csv").write_text("\n".join([head, *rows]), newline="")
    with refused(rf"a\.csv, line {line}: a quote"):
        read_rows(tmp_path / "a.csv")


def test_text_that_begins_like_others_is_no_row(tmp_path):
    texts = ["Hello", "bye", "x", "Hello, world\nbye"]
    (tmp_path / "a.csv").write_text(f'text,label\nHello,pos\nbye,neg\nx,pos\n"{texts[-1]}",neg\n')
    assert [text for text, _ in rows(tmp_path / "a.csv")] == texts


def test_repeated_columns_are_refused_unless_they_have_no_name(tmp_path):
    (tmp_path / "a.csv").write_text("text,label,text\na,b,c\n")
    with refused("the column text is there twice; rename or remove one", tmp_path / "a.csv"):
        read_rows(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_text("text,label,,\na,b,,\n")
    assert read_rows(tmp_path / "a.csv")[1][0][1] == {"text": "a", "label": "b", "": ""}
