"""From text to token ids, and back; requires the package `tokenizers`, no Keras."""

import copy
import hashlib
import itertools
import os
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self
from unicodedata import category

import numpy as np

from keras_gmlp.data.text.wordpiece import (
    SPECIAL_TOKENS,
    import_tokenizers,
    make_wordpiece,
    read_wordpiece,
    train_wordpiece,
)
from keras_gmlp.utils.files import atomic_write
from keras_gmlp.utils.text_files import find_files, read_lines, read_text


def encode_rows(tokenizer, texts, length):
    """Returns token ids, int32 `(texts, length)`."""
    encodings = tokenizer.encode_batch(texts, length)
    return np.array([encoding.ids for encoding in encodings], "int32").reshape(-1, length)


def count_cut(tokenizer, texts, length):
    """Returns the number of texts with more tokens than a length."""
    return sum(len(encoding.ids) > length for encoding in tokenizer.encode_batch(texts))


class Tokenizer:
    """Splits text into WordPiece tokens, as BERT does.

    `train`, `load` and `from_vocabulary` make one.

    Args:
        text: The content of a `tokenizer.json`.
        source: Where it comes from, the start of errors.

    Attributes:
        special_ids: The ids of `[PAD]`, `[UNK]`, `[CLS]`, `[SEP]`, `[MASK]`.

    Raises:
        ValueError: If the text is another tokenizer than a BERT's: exactly what `save` writes and
            what published BERTs have is accepted. One line.
        ImportError: If the package `tokenizers` is not installed. One line.

    Example:

    >>> from keras_gmlp.text import Tokenizer
    >>> tokenizer = Tokenizer.train(["the cat and the hat", "a hat"], vocabulary_size=128)
    >>> tokenizer.decode(tokenizer.encode("The hat").ids)
    'the hat'
    """

    def __init__(self, text: str, source: str | Path = "tokenizer.json"):
        self.text = text
        self._vocabulary, self._steps = read_wordpiece(text, source)
        # Of the special tokens only [MASK] may be written in a text; all others are plain text.
        self._tokens = make_wordpiece(self._vocabulary, **self._steps, special=["[MASK]"])
        self.special_ids = tuple(self._vocabulary[name] for name in SPECIAL_TOKENS)
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = self.special_ids
        self._sized = {None: self._add_ends(self._tokens)}

    @classmethod
    def train(
        cls,
        files_or_lines: str | Path | Iterable[str],
        vocabulary_size: int = 16384,
        lowercase: bool = True,
        strip_accents: bool = False,
    ) -> Self:
        """Learns a vocabulary; the same text gives the same one.

        Args:
            files_or_lines: Texts; or a text file, a folder of them or a pattern such as
                `"wiki/*.txt"`.
            vocabulary_size: Number of tokens, at most: a short text gives fewer. The special tokens
                `[PAD]`, `[UNK]`, `[CLS]`, `[SEP]`, `[MASK]` have the ids 0 to 4.
            lowercase: Whether to lower letters.
            strip_accents: Whether to strip all marks of letters, as BERT does: accents, but also
                those of Japanese, Hindi and Thai, without which many words are equal.

        Returns:
            A `Tokenizer`.
        """
        if isinstance(files_or_lines, (str, os.PathLike)):
            files_or_lines = itertools.chain(*map(read_lines, find_files(files_or_lines)))
        lines = list(files_or_lines)
        trained = train_wordpiece(lines, vocabulary_size, lowercase, strip_accents)
        return cls(trained.to_str(pretty=True))

    @classmethod
    def from_vocabulary(
        cls, path: str | Path, lowercase: bool = True, strip_accents: bool | None = None
    ) -> Self:
        """Opens BERT's `vocab.txt`: one token a line, whose number is its id.

        Accents are stripped if letters are lowered, unless `strip_accents` says otherwise.
        """
        ids = {token: number for number, token in enumerate(read_lines(path))}
        return cls(make_wordpiece(ids, lowercase, strip_accents).to_str(pretty=True), path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Opens a `tokenizer.json`, or a `vocab.txt` by its suffix."""
        if Path(path).suffix.lower() == ".txt":
            return cls.from_vocabulary(path)
        return cls(read_text(path), path)

    def save(self, path: str | Path) -> None:
        """Writes a `tokenizer.json`; a loaded one stays the same byte for byte."""
        with atomic_write(path) as temporary:
            temporary.write_bytes(self.text.encode())

    def to_bert(self) -> Any:
        """Returns the `tokenizers.Tokenizer` that adds `[CLS]` and `[SEP]`, as BERT's does."""
        return self._add_ends(make_wordpiece(self._vocabulary, **self._steps))

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the `tokenizer.json`, in hexadecimal digits."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def size(self) -> int:
        """Number of tokens in the vocabulary."""
        return len(self._vocabulary)

    @cached_property
    def tokens(self) -> list[str]:
        """All tokens as text, by id."""
        return sorted(self._vocabulary, key=self._vocabulary.get)

    @cached_property
    def are_words(self) -> np.ndarray:
        """Whether each token is a word: no piece inside a word, with a letter or a digit; bool."""
        found = np.array(
            [
                not token.startswith("##") and any(category(letter)[0] in "LN" for letter in token)
                for token in self.tokens
            ]
        )
        found[list(self.special_ids)] = False
        return found

    def encode(self, a: str, b: str | None = None, length: int | None = None) -> Any:
        """Encodes `[CLS] a [SEP]` or `[CLS] a [SEP] b [SEP]`.

        Args:
            a, b: Texts. `[MASK]` in them is one token; other special tokens are plain text.
            length: Number of tokens. A longer text loses its end; of a pair, the longer one loses
                tokens until both are equally long. A shorter one is padded with `[PAD]`. Defaults
                to all tokens.

        Returns:
            An `Encoding` of the package `tokenizers`: among others `ids` and `offsets`, where each
            token is in its text, `(0, 0)` for the tokens that the tokenizer adds.

        Raises:
            ValueError: If a text is not a string, or the length is too small. One line.
        """
        return self.encode_batch([a if b is None else (a, b)], length)[0]

    def encode_batch(
        self, texts: Iterable[str | tuple[str, str]], length: int | None = None
    ) -> list:
        """Encodes a list of texts or pairs `(a, b)`; returns a list of `Encoding`."""
        try:
            return self._find_sized(length).encode_batch([*texts])
        except TypeError:  # of half a character, too, such as "\ud83d" in JSON
            raise ValueError("expected texts in UTF-8; received something else.") from None

    def encode_plain(self, lines: Sequence[str]) -> list[list[int]]:
        """Returns the ids of each line as a list, without added tokens; `[MASK]` is plain text."""
        return [part.ids for part in self._plain.encode_batch_fast(lines, add_special_tokens=False)]

    def decode(self, ids: Sequence[int], skip_special: bool = True) -> str:
        """Returns the text of token ids, with normal spaces before and after words."""
        skipped = self.special_ids if skip_special else ()
        ids = [int(i) for i in ids if int(i) not in skipped]
        return self._tokens.decode(ids, skip_special_tokens=False)

    @cached_property
    def _plain(self):
        return make_wordpiece(self._vocabulary, **self._steps, special=())

    def _add_ends(self, tokens):
        """Returns the `tokenizers.Tokenizer`, which then adds `[CLS]` and `[SEP]`."""
        ends = ("[SEP]", self.sep_id), ("[CLS]", self.cls_id)
        tokens.post_processor = import_tokenizers().processors.BertProcessing(*ends)
        return tokens

    def _find_sized(self, length):
        """Returns the `tokenizers.Tokenizer` that cuts and pads to a length; threads share it."""
        if length is not None and length < 5:
            raise ValueError(f"length is {length}; expected at least 5, with [CLS] and [SEP].")
        if length not in self._sized:
            tokens = copy.deepcopy(self._sized[None])
            tokens.enable_truncation(length)
            tokens.enable_padding(length=length)
            self._sized[length] = tokens
        return self._sized[length]


def describe_unknown(share):
    """Returns a line of text if a share of unknown tokens is high, else an empty one."""
    if share <= 0.01:
        return ""
    return (
        f"{100 * share:.1f} % of the tokens are unknown to the tokenizer, and lost. Train one on "
        "text of this language, with a larger vocabulary (--vocabulary-size)."
    )
