"""Text files as one array of tokens.

A file has one paragraph a line and a blank line between documents. The folder then holds
tokenizer.json and the tokens; training opens it without reading the text again.
"""

import dataclasses
import hashlib
import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from keras_gmlp.data.text.tokenizer import Tokenizer
from keras_gmlp.data.text.wordpiece import MAX_SIZE
from keras_gmlp.utils.files import (
    atomic_folder,
    directory_lock,
    hash_file,
    load_array,
    parse_json,
    read_json,
    remove_leftovers,
    write_json,
)
from keras_gmlp.utils.progress import ProgressBar
from keras_gmlp.utils.text_files import find_files, read_lines

FORMAT = 1  # of the stored corpus; part of its name
LINES = 256  # encoded together
TRAINING_CHARACTERS = 20_000_000  # of text, for the tokenizer
RECORD = "prepared.json"


class Corpus:
    """The tokens of all documents, memory-mapped, as `encode_files` wrote them into a folder."""

    def __init__(self, folder):
        self.folder = Path(folder)
        place = self.folder / "corpus.json"
        self.info = parse_json(place.read_bytes(), place)
        remedy = f"delete {folder} and try again"
        # uint16 `(tokens,)`: the documents one after another, `[SEP]` between paragraphs.
        tokens = load_array(self.folder / "tokens.npy", remedy, mmap_mode="r")
        self.tokens = np.asarray(tokens)  # NumPy's memmap is slower to index
        # `(documents + 1,)`: where each document starts, and where the last one ends.
        self.starts = load_array(self.folder / "starts.npy", remedy)

    def __len__(self):
        return len(self.tokens)

    def windows(self, length):
        """Cuts the documents into windows of `length` tokens or fewer; returns starts and stops."""
        inside = length - 2
        sizes = np.diff(self.starts)
        counts = -(-sizes // inside)
        document = np.repeat(np.arange(len(sizes)), counts)
        before = np.repeat(np.cumsum(counts) - counts, counts)
        starts = self.starts[document] + (np.arange(len(document)) - before) * inside
        return np.stack([starts, np.minimum(starts + inside, self.starts[document + 1])], axis=1)

    def summary(self):
        """Returns the corpus' size as a line of text."""
        info = self.info
        return (
            f"{info['tokens']:,} tokens in {info['documents']:,} documents, "
            f"{100 * info['unknown'] / info['tokens']:.4f} % unknown"
        )


def build_corpus(files, tokenizer, folder, name="corpus"):
    """Encodes text files, once: the same files and tokenizer open what is stored."""
    if tokenizer.size > MAX_SIZE:
        raise ValueError(
            f"the vocabulary has {tokenizer.size:,} tokens; a corpus stores at most {MAX_SIZE:,}."
        )
    paths = find_files(files)
    key = _hash([str(FORMAT), tokenizer.hash, *map(hash_file, paths)])
    place = Path(folder) / f"{name}-{key[:16]}"
    if not (place / "corpus.json").exists():
        remove_leftovers(folder, rf"{name}-[0-9a-f]+")
        with atomic_folder(place) as temporary:
            temporary.mkdir()
            encode_files(paths, tokenizer, temporary, f"encoding {name}")
    return Corpus(place)


def encode_files(paths, tokenizer, folder, job):
    """Writes tokens.npy, starts.npy and corpus.json, which `Corpus` reads."""
    starts, tokens, unknown = [0], 0, 0
    lines = _read_files(paths, job)
    with open(folder / "tokens.npy", "wb") as file:
        _write_header(file, 0)  # their number is known at the end only
        while batch := list(itertools.islice(lines, LINES)):
            new = []
            for text, ids in zip(batch, tokenizer.encode_plain(batch), strict=True):
                inside = tokens + len(new) > starts[-1]
                if ids:
                    new += [tokenizer.sep_id, *ids] if inside else ids
                elif inside and not text.strip():
                    starts.append(tokens + len(new))
            file.write(np.array(new, "uint16"))
            tokens += len(new)
            unknown += new.count(tokenizer.unk_id)
        file.seek(0)
        _write_header(file, tokens)
    if not tokens:
        raise ValueError(f"{', '.join(map(str, paths))}: no text; expected a paragraph a line.")
    if tokens > starts[-1]:
        starts.append(tokens)
    np.save(folder / "starts.npy", np.array(starts, "int64"))
    info = {
        "tokenizer": tokenizer.hash,
        "vocabulary_size": tokenizer.size,
        "special_ids": list(tokenizer.special_ids),
        "tokens": tokens,
        "documents": len(starts) - 1,
        "unknown": unknown,
    }
    write_json(folder / "corpus.json", info)


def _read_files(paths, job):
    """Yields the lines of all files, a blank line after each file, and shows a bar."""
    sizes = [path.stat().st_size for path in paths]
    with ProgressBar(job, max(sum(sizes), 1)) as bar:
        for number, path in enumerate(paths):
            before = sum(sizes[:number])
            yield from read_lines(path, lambda done, before=before: bar.show(before + done))
            yield ""


def _write_header(file, tokens):
    # NumPy leaves room for a larger number: all headers are equally long.
    header = {"descr": "<u2", "fortran_order": False, "shape": (tokens,)}
    np.lib.format.write_array_header_1_0(file, header)


@dataclasses.dataclass(frozen=True)
class PreparedCorpus:
    """A tokenizer with the corpora that it encoded; `open` finds them in their folder."""

    tokenizer: Tokenizer
    train: Corpus
    test: Corpus
    name: str = "text"

    @classmethod
    def open(cls, folder):
        """Opens what `prepare_corpus` wrote into a folder."""
        folder = Path(folder)
        record = read_json(folder / RECORD)
        if not (record and record["valid"]):
            raise ValueError(
                f"{folder}: not a prepared corpus with text for testing; write one: apps/train.py "
                "--text FILES --valid FILES."
            )
        tokenizer = Tokenizer.load(folder / "tokenizer.json")
        corpora = [Corpus(folder / record[name]) for name in ("train", "valid")]
        for corpus in corpora:
            if corpus.info["tokenizer"] != tokenizer.hash:
                raise ValueError(
                    f"{corpus.folder}: another tokenizer encoded it than {folder}/tokenizer.json; "
                    "prepare it in a new folder."
                )
        return cls(tokenizer, *corpora, folder.resolve().name)


def prepare_corpus(
    files: str | Path | Sequence[str | Path],
    tokenizer: int | str | Path | Tokenizer,
    folder: str | Path,
    valid: str | Path | Sequence[str | Path],
    lowercase: bool = True,
    strip_accents: bool = False,
) -> PreparedCorpus:
    """Trains a tokenizer on text files and encodes them, for training.

    Args:
        files: Text files; see `find_files`. One paragraph a line, a blank line between documents.
        tokenizer: The number of tokens of a vocabulary to learn, from about the first 20 million
            characters, or a `Tokenizer`, or the path of a tokenizer.json or a vocab.txt.
        folder: Gets tokenizer.json and the tokens. What it already holds is not computed again.
        valid: Text files to test on.
        lowercase, strip_accents: For a new tokenizer, as in `Tokenizer.train`.

    Returns:
        An object with the `tokenizer` and what it encoded, `train` and `test`, which
        `MaskedBatches` takes.

    Raises:
        ValueError: If a file cannot be read, there is no text, the vocabulary size is out of range,
            or the folder has another tokenizer. One line.
    """
    folder, paths, valid = Path(folder), find_files(files), find_files(valid)
    with directory_lock(folder):
        stored = folder / "tokenizer.json"  # models may depend on it
        learned = read_json(folder / RECORD, {}).get("learned")
        if isinstance(tokenizer, int):
            text = _hash(map(hash_file, paths))
            asked = [tokenizer, lowercase, TRAINING_CHARACTERS, text, strip_accents]
            known = learned == asked
            tokenizer = stored if known else _learn(paths, tokenizer, lowercase, strip_accents)
            learned = asked
        if not isinstance(tokenizer, Tokenizer):
            tokenizer = Tokenizer.load(tokenizer)
        if stored.exists() and Tokenizer.load(stored).hash != tokenizer.hash:
            raise ValueError(f"{stored}: is another tokenizer; choose another folder or delete it.")
        # The validation text first, because it is short: a damaged one is then found at once.
        parts = {"valid": valid, "train": paths}
        names = {
            name: build_corpus(files, tokenizer, folder, name).folder.name
            for name, files in parts.items()
        }
        if not stored.exists():
            tokenizer.save(stored)  # last, so that a failure leaves none
        write_json(folder / RECORD, {"learned": learned, **names})
        return PreparedCorpus.open(folder)


def _learn(paths, size, lowercase, strip_accents):
    """Returns a new tokenizer of the start of each file."""
    lines = []
    with ProgressBar() as bar:
        bar.write(f"tokenizer: learning {size:,} tokens")
        for path in paths:
            room = TRAINING_CHARACTERS // len(paths)  # of every file, for what each is about
            for text in read_lines(path):
                lines.append(text)
                room -= len(text) + 1  # the end of the line
                if room <= 0:
                    break
        return Tokenizer.train(lines, size, lowercase, strip_accents)


def _hash(texts):
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()
