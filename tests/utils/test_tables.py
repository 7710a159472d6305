"""CSV and TSV files as people and spreadsheets write them."""

import pytest
from refused import refused

from keras_gmlp.utils.tables import read_rows, write_table


def rows(path, content):
    path.write_text(content, "utf-8", newline="")
    names, found = read_rows(path)
    return [tuple(row[name] for name in names) for _, row in found]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.CSV", "\ufefftext,label\r\na,1\r\n\r\nb,2"),
        ("a.csv", 'text, label\na, "1"\n"b", 2\n'),
        ("a.csv", 'text; "label"\n"a"; 1\nb;  "2"\n'),
        ("a.csv", "text\tlabel\na\t1\nb\t2\n"),
        ("a.TSV", "text\tlabel\na\t1\nb\t2\n"),
    ],
)
def test_forms_of_one_table(tmp_path, name, content):
    assert rows(tmp_path / name, content) == [("a", "1"), ("b", "2")]


def test_texts_with_quotes_and_lines_stay(tmp_path):
    texts = ['an inch "', "one, two\nthree, yes\r\nfour", 'he said "no"', "5\" or 6'", "a\n\nb"]
    lines = ['"{}", 1\n'.format(text.replace('"', '""')) for text in texts]
    found = rows(tmp_path / "a.csv", "text, label\n" + "".join(lines))
    assert [text for text, _ in found] == texts
    tsv = 'text\tlabel\n"an inch "\t1\n'
    assert rows(tmp_path / "a.tsv", tsv) == [('"an inch "', "1")]
    with refused(r"a\.csv, line 3: .*quote"):
        rows(tmp_path / "a.csv", 'text,label\na,1\n"b,2\nc,3\n')
    # Columns without a name.
    assert rows(tmp_path / "a.csv", "text,label,,\na,b,,\n") == [("a", "b", "", "")]


def test_cells_that_a_spreadsheet_would_compute_stay_text(tmp_path):
    cells = ["=cmd|' /C calc'!A0", "+a", "-a", "@a", "\ta", "-1.5", -2, "a=b", 0.5]
    write_table(tmp_path / "a.csv", [cells])
    text = (tmp_path / "a.csv").read_text()
    assert text == "'=cmd|' /C calc'!A0,'+a,'-a,'@a,'\ta,-1.5,-2,a=b,0.5\n"
