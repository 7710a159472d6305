"""Text files as one array of tokens."""

import itertools
import lzma

import numpy as np
import pytest
from refused import refused

from keras_gmlp.data.text import corpus as module
from keras_gmlp.data.text.corpus import Corpus, PreparedCorpus, build_corpus, prepare_corpus
from keras_gmlp.data.text.tokenizer import Tokenizer
from keras_gmlp.utils.text_files import find_files, read_lines

TEXT = "The first document.\nHas two paragraphs.\n\n\nThe second.\n \nAnd a third, [SEP] at the end"


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train([TEXT] * 3, 128)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def encode(tokenizer, *paragraphs):
    """The ids of a document, from the encoding of each paragraph alone."""
    ids = [tokenizer.encode(text).ids[1:] for text in paragraphs]
    return [*itertools.chain(*ids)][:-1]


@pytest.mark.parametrize("lines", [2, 256])
def test_documents_and_paragraphs(file, tokenizer, tmp_path, monkeypatch, lines):
    monkeypatch.setattr(module, "LINES", lines)
    corpus = build_corpus(file, tokenizer, tmp_path / "out")
    expected = [
        encode(tokenizer, "The first document.", "Has two paragraphs."),
        encode(tokenizer, "The second."),
    ]
    bounds = zip(corpus.starts[:-1], corpus.starts[1:], strict=True)
    documents = [corpus.tokens[start:stop].tolist() for start, stop in bounds]
    assert documents[:2] == expected
    assert not set(documents[2]) & {0, 2, 3, 4}  # [SEP] in a text is not a separator
    assert tokenizer.decode(documents[2]).replace(" ", "") == "andathird,[sep]attheend"
    assert corpus.info["documents"] == 3
    assert corpus.tokens.dtype == np.uint16
    assert len(corpus) == corpus.info["tokens"] == sum(map(len, documents))
    assert corpus.info["unknown"] == 0
    assert corpus.info["tokenizer"] == tokenizer.hash
    assert corpus.summary().startswith(f"{len(corpus)} tokens in 3 documents, ")
    foreign = build_corpus(file, Tokenizer.train(["ελληνικά γράμματα"], 128), tmp_path)
    assert foreign.info["unknown"] > 15


def test_files_are_separate_documents_in_order(file, tokenizer, tmp_path):
    packed = tmp_path / "b.txt.xz"
    packed.write_bytes(lzma.compress("\ufeffthe second\r\nthe first\r\n".encode()))
    corpus = build_corpus([file, packed], tokenizer, tmp_path / "out")
    assert corpus.info["documents"] == 4
    last = corpus.tokens[corpus.starts[3] :]
    assert last.tolist() == encode(tokenizer, "the second", "the first")
    assert find_files(tmp_path) == find_files(str(tmp_path / "*.txt*")) == [file, packed]


def test_stored_corpus_is_opened(file, tokenizer, tmp_path, monkeypatch):
    first = build_corpus(file, tokenizer, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(module, "encode_files", None)
        assert build_corpus(str(file), tokenizer, tmp_path).folder == first.folder
    file.write_text("Another text.")
    assert build_corpus(file, tokenizer, tmp_path).folder != first.folder
    other = Tokenizer.train(["another text"], 128)
    assert build_corpus(file, other, tmp_path).info["tokenizer"] == other.hash


def test_failure_leaves_nothing(file, tmp_path):
    damaged, folder = tmp_path / "b.txt", tmp_path / "out"
    damaged.write_bytes(b"good\n" * 3 + b"ab\xe9cd")
    with pytest.raises(ValueError, match=r"b.txt: not UTF-8 in line 4"):
        prepare_corpus(file, 128, folder, valid=damaged)
    assert list(folder.iterdir()) == []
    prepare_corpus(file, 140, folder, valid=file)  # another vocabulary


def test_windows_cover_documents_and_never_cross_them(file, tokenizer, tmp_path):
    corpus = build_corpus(file, tokenizer, tmp_path)
    for length in (8, 9, 16):
        expected = [
            (start, min(start + length - 2, end))
            for begin, end in zip(corpus.starts[:-1], corpus.starts[1:], strict=True)
            for start in range(begin, end, length - 2)
        ]
        assert corpus.windows(length).tolist() == [list(map(int, each)) for each in expected]


def test_errors_are_one_line(tokenizer, tmp_path, monkeypatch):
    (tmp_path / "zero.txt").symlink_to("/dev/zero")
    (tmp_path / "nul.txt").write_text("one\n" + "x" * 40_000 + "\na\0b\nfour")
    for name, match in (("zero.txt", "line 1 has more than"), ("nul.txt", "NUL.* line 3")):
        with refused(match, tmp_path / name):
            list(read_lines(tmp_path / name))
    empty, cut = tmp_path / "empty.txt", tmp_path / "cut.txt.xz"
    empty.write_text("\n \n")
    cut.write_bytes(lzma.compress(b"some text")[:-5])
    for files, match in [
        ([empty, empty], r"empty\.txt: no text"),
        (cut, r"cut\.txt\.xz: damaged"),
    ]:
        with refused(match):
            build_corpus(files, tokenizer, tmp_path / "out")
    monkeypatch.setattr(module, "MAX_SIZE", 10)
    with refused("at most 10"):
        build_corpus(empty, tokenizer, tmp_path)


def test_damaged_corpus_is_one_line(file, tokenizer, tmp_path):
    corpus = build_corpus(file, tokenizer, tmp_path)
    for name, content in [("starts.npy", b"none"), ("tokens.npy", b"")]:
        (corpus.folder / name).write_bytes(content)
        with refused("damaged"):
            Corpus(corpus.folder)


def test_prepared_corpus_is_opened_again(file, tmp_path, monkeypatch):
    valid = tmp_path / "valid.txt"
    valid.write_text("the first of the second")
    prepared = prepare_corpus(file, 128, tmp_path / "out", valid)
    assert (prepared.train.info["documents"], prepared.test.info["documents"]) == (3, 1)
    with monkeypatch.context() as patch:
        patch.setattr(module, "_learn", None)
        patch.setattr(module, "encode_files", None)
        for tokenizer in (tmp_path / "out/tokenizer.json", 128):
            prepare_corpus(file, tokenizer, tmp_path / "out", valid)
    with pytest.raises(ValueError, match="another tokenizer"):
        prepare_corpus(file, 128, tmp_path / "out", valid, lowercase=False)
    given = prepare_corpus(file, tmp_path / "out/tokenizer.json", tmp_path / "given", valid)
    assert given.tokenizer.hash == prepared.tokenizer.hash
    Tokenizer.train(["another"], 128).save(tmp_path / "out/tokenizer.json")
    with pytest.raises(ValueError, match="another tokenizer"):
        PreparedCorpus.open(tmp_path / "out")
    with pytest.raises(ValueError, match="not a prepared corpus"):
        PreparedCorpus.open(tmp_path)


def test_tokenizer_learns_from_the_start_of_each_file(tmp_path, monkeypatch):
    for name, text in [("a", "aaa\n" * 50 + "zzz\n"), ("b", "bbb\n" * 50 + "zzz\n")]:
        (tmp_path / f"{name}.txt").write_text(text)
    monkeypatch.setattr(module, "TRAINING_CHARACTERS", 60)
    tokens = prepare_corpus(tmp_path, 128, tmp_path / "out", tmp_path / "a.txt").tokenizer.tokens
    assert {"a", "b"} < set(tokens)
    assert "z" not in tokens
