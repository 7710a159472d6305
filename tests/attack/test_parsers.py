"""Parsers of our own on inputs that Hypothesis makes, and shrinks when one fails.

`make attack` runs them on more inputs; see the profiles in conftest.py.
"""

import csv
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_gmlp.data.text.labelled_files import read_all_rows
from keras_gmlp.data.text.tokenizer import SPECIAL_TOKENS, Tokenizer, make_wordpiece
from keras_gmlp.utils import card
from keras_gmlp.utils.tables import read_rows

# The same text may come with two labels.
pytestmark = pytest.mark.filterwarnings("ignore::keras_gmlp.utils.errors.DataWarning")

# Without NUL, which no file of text holds.
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
CELL = st.one_of(TEXT, st.text('",;\t\r\n a=', max_size=8))
VALUE = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(TEXT, inside, max_size=3),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("parsers")


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(["a cat, a hat"], 128)


def accept(read, *arguments):
    """Returns a result, or the text of an error of one line."""
    try:
        return read(*arguments)
    except ValueError as error:
        text = str(error)
    assert len(text.splitlines()) == 1
    return text


@given(st.binary(max_size=80) | CELL.map(str.encode), st.sampled_from((".csv", ".tsv", ".jsonl")))
def test_any_bytes_are_a_table_or_refused(folder, content, suffix):
    path = folder / f"any{suffix}"
    path.write_bytes(b"text\tlabel\n" * (suffix == ".tsv") + content)
    assert accept(read_all_rows, path)


@given(st.lists(st.tuples(CELL, CELL), min_size=1, max_size=8))
def test_written_rows_are_read(folder, rows):
    path = folder / "rows.csv"
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *rows])
    found = [tuple(row.values()) for _, row in read_rows(path)[1]]
    # The space after a separator is not part of a cell without quotes.
    assert [[cell.lstrip(" ") for cell in row] for row in found] == [
        [cell.lstrip(" ") for cell in row] for row in rows
    ]


def list_places(value, place=()):
    """Returns the places of all parts of a JSON value, as tuples of keys."""
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    inside = [(part, (*place, key)) for key, part in parts]
    deeper = (list_places(*x) for x in inside if isinstance(x[0], dict | list))
    return [there for _, there in inside] + [there for places in deeper for there in places]


@given(st.data(), VALUE)
def test_any_tokenizer_is_ours_or_refused(tokenizer, data, value):
    content = part = json.loads(tokenizer.text)
    *parents, last = data.draw(st.sampled_from(list_places(content)))
    for key in parents:
        part = part[key]
    part[last] = value
    found = accept(Tokenizer, json.dumps(content))
    if not isinstance(found, str):
        ids = found.encode("a cat, a hat [MASK] \u0e01").ids
        assert max(ids) < found.size == len(found.tokens) == tokenizer.size
        assert found.decode(ids).startswith("a cat")


@given(TEXT | VALUE.map(json.dumps), TEXT)
def test_any_card_is_read_or_refused(text, labels):
    found = accept(card.from_members, {card.CARD: text, card.LABELS: labels})
    assert isinstance(found, dict | str)


WORD = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "M")), min_size=1)


@given(st.lists(WORD, unique=True, max_size=6), st.booleans())
def test_written_tokenizers_are_read(words, lowercase):
    names = dict.fromkeys([*SPECIAL_TOKENS, *words])
    vocabulary = {name: number for number, name in enumerate(names)}
    text = make_wordpiece(vocabulary, lowercase).to_str()
    assert Tokenizer(text).tokens == list(vocabulary)
