"""From text to token ids, and back; requires the package `tokenizers`, no Keras."""

import dataclasses
import hashlib
import os
from collections import Counter
from functools import cached_property
from pathlib import Path
from unicodedata import category

import numpy as np

from keras_gmlp.data.text.files import find_files, read_lines
from keras_gmlp.utils.environment import require
from keras_gmlp.utils.errors import check_text
from keras_gmlp.utils.files import atomic_write
from keras_gmlp.utils.inputs import TEXTS


@dataclasses.dataclass(frozen=True)
class Encoding:
    """The tokens of a text or of a pair of texts.

    Attributes:
        ids: int32 `(tokens,)`.
        offsets: int32 `(tokens, 2)`: each token is `text[start:stop]` of its own text. `(0, 0)` for
            the tokens that the tokenizer adds.
        parts: int8 `(tokens,)`: 0 for the first text, 1 for the second, -1 for added tokens.
    """

    ids: np.ndarray
    offsets: np.ndarray
    parts: np.ndarray

    def __len__(self):
        return len(self.ids)


class Tokenizer:
    """Splits text into WordPiece tokens, as BERT does.

    `train`, `load` and `from_vocabulary` make one.

    Args:
        text: The content of a `tokenizer.json`.
        source: Where it comes from, the start of errors.

    Raises:
        ValueError: If the text is no tokenizer, or one without BERT's special tokens. One line.
        ImportError: If the package `tokenizers` is not installed. One line.

    Example:

    >>> from keras_gmlp.data.text import Tokenizer
    >>> tokenizer = Tokenizer.train(["the cat and the hat", "a hat"], vocabulary_size=128)
    >>> tokenizer.decode(tokenizer.encode("The hat").ids)
    'the hat'
    """

    def __init__(self, text, source="tokenizer.json"):
        self.text = text
        self._tokens = self._open(source)
        ids = {name: self._tokens.token_to_id(name) for name in SPECIAL_TOKENS}
        lacking = [name for name, number in ids.items() if number is None]
        if lacking:
            raise ValueError(
                f"{source}: the vocabulary lacks {', '.join(lacking)}; expected BERT's special "
                f"tokens, {', '.join(SPECIAL_TOKENS)}."
            )
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = ids.values()
        if self.pad_id != 0:
            raise ValueError(
                f"{source}: the id of [PAD] is {self.pad_id}; expected 0, which models ignore."
            )

    def _open(self, source):
        tokenizers = import_tokenizers()
        try:
            tokens = tokenizers.Tokenizer.from_str(self.text)
        except Exception as error:  # the package raises no other type
            reason = " ".join(str(error).split())
            raise ValueError(f"{source}: not a tokenizer.json ({reason}).") from None
        tokens.no_truncation()
        tokens.no_padding()
        return tokens

    @classmethod
    def train(cls, files_or_lines, vocabulary_size=16384, lowercase=True, state=None):
        """Learns a vocabulary; the same text gives the same one.

        Args:
            files_or_lines: A text file, a pattern such as `"wiki/*.txt"`, a list of files, or the
                texts themselves. Strings are files if each ends in `.txt` or `.txt.xz`.
            vocabulary_size: Number of tokens, at most: a short text gives fewer. The special tokens
                `[PAD]`, `[UNK]`, `[CLS]`, `[SEP]`, `[MASK]` have the ids 0 to 4.
            lowercase: Whether to lower letters and strip accents.
            state: Called with a line of text at the start of each stage.

        Returns:
            A `Tokenizer`.
        """
        if isinstance(files_or_lines, (str, os.PathLike)):
            files_or_lines = find_files(files_or_lines)
        items = list(files_or_lines)
        if items and all(map(_names_file, items)):
            items = [line for path in find_files(items) for line in read_lines(path)]
        return cls(train_wordpiece(items, vocabulary_size, lowercase, state).to_str(pretty=True))

    @classmethod
    def from_vocabulary(cls, path, lowercase=True):
        """Opens BERT's `vocab.txt`: one token a line, whose number is its id."""
        tokens = list(read_lines(path))
        ids = {token: number for number, token in enumerate(tokens)}
        if len(ids) < len(tokens):
            twice = next(token for number, token in enumerate(tokens) if ids[token] != number)
            raise ValueError(f"{path}: has {twice!r} on two lines; expected each token once.")
        if lacking := [name for name in SPECIAL_TOKENS if name not in ids]:
            raise ValueError(f"{path}: lacks {', '.join(lacking)}; expected a vocab.txt of BERT.")
        return cls(make_wordpiece(ids, lowercase).to_str(pretty=True), path)

    @classmethod
    def load(cls, path):
        """Opens a `tokenizer.json`, or a `vocab.txt` by its suffix."""
        if Path(path).suffix.lower() == ".txt":
            return cls.from_vocabulary(path)
        try:
            return cls(Path(path).read_bytes().decode(), path)
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: not UTF-8 at byte {error.start:,}.") from None
        except FileNotFoundError:
            raise ValueError(f"{path}: no such file; expected a tokenizer.json.") from None

    def save(self, path):
        """Writes a `tokenizer.json`; a loaded one stays the same byte for byte."""
        with atomic_write(path) as temporary:
            temporary.write_bytes(self.text.encode())

    @cached_property
    def hash(self):
        """SHA-256 of the `tokenizer.json`, in hexadecimal digits."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def size(self):
        """Number of tokens in the vocabulary."""
        return self._tokens.get_vocab_size()

    @property
    def special_ids(self):
        """The ids of `[PAD]`, `[UNK]`, `[CLS]`, `[SEP]`, `[MASK]`."""
        return self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id

    @cached_property
    def tokens(self):
        """All tokens as text, by id; `None` for an id without a token."""
        ids = self._tokens.get_vocab()
        names = [None] * (max(ids.values()) + 1)
        for token, number in ids.items():
            names[number] = token
        return names

    @cached_property
    def are_words(self):
        """Whether each token is a word: no piece inside a word, with a letter or a digit; bool."""
        found = np.array([bool(token) and is_word(token) for token in self.tokens])
        found[list(self.special_ids)] = False
        return found

    def encode(self, a, b=None, length=None):
        """Encodes `[CLS] a [SEP]` or `[CLS] a [SEP] b [SEP]`.

        Args:
            a, b: Texts. A special token in them, such as `[MASK]`, is one token.
            length: Number of tokens. A longer text loses its end; of a pair, the longer one loses
                tokens until both are equally long. A shorter one is padded with `[PAD]`. Defaults
                to all tokens.

        Returns:
            An `Encoding`.

        Raises:
            ValueError: If a text is no string, or the length too small. One line.
        """
        return self.encode_batch([a if b is None else (a, b)], length)[0]

    def encode_batch(self, texts, length=None):
        """Encodes a list of texts or pairs `(a, b)`; returns a list of `Encoding`."""
        pairs = [(text,) if isinstance(text, str) else tuple(text) for text in texts]
        flat = [check_text(text) for pair in pairs for text in pair]
        parts = iter(self._tokens.encode_batch(flat, add_special_tokens=False))
        return [self._join([next(parts) for _ in pair], length) for pair in pairs]

    def encode_plain(self, lines):
        """Returns the ids of each line as a list, without added tokens; `[MASK]` is plain text."""
        return [part.ids for part in self._plain.encode_batch_fast(lines, add_special_tokens=False)]

    def decode(self, ids, skip_special=True):
        """Returns the text of token ids, with normal spaces before and after words."""
        return self._tokens.decode([int(i) for i in ids], skip_special_tokens=skip_special)

    @cached_property
    def _plain(self):
        tokens = self._open("tokenizer.json")
        tokens.encode_special_tokens = True
        return tokens

    def _join(self, parts, length):
        added = 1 + len(parts)
        kept = [len(part.ids) for part in parts]
        if length is not None:
            if length < added + len(parts):
                raise ValueError(
                    f"length is {length}; expected at least {added + len(parts)} for "
                    f"{len(parts)} text(s) with [CLS] and [SEP]."
                )
            kept = shorten(kept, length - added)
        total = sum(kept) + added
        ids = np.full(length or total, self.pad_id, "int32")
        offsets = np.zeros((len(ids), 2), "int32")
        sides = np.full(len(ids), -1, "int8")
        ids[0], start = self.cls_id, 1
        for side, (part, count) in enumerate(zip(parts, kept, strict=True)):
            place = slice(start, start + count)
            ids[place] = part.ids[:count]
            if count:
                offsets[place] = part.offsets[:count]
            sides[place] = side
            start += count + 1
            ids[start - 1] = self.sep_id
        return Encoding(ids, offsets, sides)


def shorten(lengths, total):
    """Returns the lengths of one or two texts cut to a total, one token at a time."""
    if sum(lengths) <= total:
        return lengths
    if len(lengths) == 1:
        return [total]
    first = max(min(lengths[0], total - total // 2), total - lengths[1])
    return [first, total - first]


def is_word(token):
    """Returns whether a token can stand for a word, rather than inside one or for punctuation."""
    return not token.startswith("##") and any(category(letter)[0] in "LN" for letter in token)


def _names_file(item):
    return isinstance(item, os.PathLike) or str(item).lower().endswith(TEXTS)


SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
MIN_SIZE, MAX_SIZE = 128, 2**16  # a corpus stores 16 bits a token


def make_wordpiece(vocabulary, lowercase=True):
    """Returns a `tokenizers.Tokenizer` with BERT's steps."""
    tokenizers = import_tokenizers()
    model = tokenizers.models.WordPiece(vocabulary, unk_token="[UNK]")
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = tokenizers.decoders.WordPiece(prefix="##")
    tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
    return tokenizer


def train_wordpiece(lines, size, lowercase=True, state=None):
    """Learns a vocabulary from text; the same text gives the same vocabulary."""
    if not MIN_SIZE <= size <= MAX_SIZE:
        raise ValueError(
            f"vocabulary_size is {size:,}; expected {MIN_SIZE:,} to {MAX_SIZE:,}, such as 8,192."
        )
    tokenizers = import_tokenizers()
    state = state or (lambda text: None)
    blank = make_wordpiece({token: i for i, token in enumerate(SPECIAL_TOKENS)}, lowercase)
    state("counting letters")
    # A letter takes two tokens: at the start of a word, and inside.
    letters = _frequent_letters(lines, blank.normalizer, max(size // 16, min(100, size // 3)))
    inner = [f"##{letter}" for letter in letters if _continues(letter, blank)]
    trainer = tokenizers.trainers.WordPieceTrainer(
        vocab_size=size,
        # The trainer numbers letters in an order that differs from run to run, and breaks ties by
        # number. The special tokens come first and keep their order.
        special_tokens=[*SPECIAL_TOKENS, *letters, *inner],
        initial_alphabet=letters,
        limit_alphabet=len(letters),
        show_progress=False,
    )
    state(f"learning {size:,} tokens")
    blank.train_from_iterator(lines, trainer)
    return make_wordpiece(blank.get_vocab(with_added_tokens=False), lowercase)


def import_tokenizers():
    """Imports the package `tokenizers`, or raises an `ImportError` that says how to install it."""
    return require("tokenizers", "text", "text")


def _frequent_letters(lines, normalizer, most):
    counts = Counter()
    for line in lines:
        counts.update(normalizer.normalize_str(line))
    for letter in [letter for letter in counts if letter.isspace()]:
        del counts[letter]
    if not counts:
        raise ValueError("the text is empty; a tokenizer learns from at least one word.")
    return sorted(sorted(counts, key=lambda letter: (-counts[letter], letter))[:most])


def _continues(letter, tokenizer):
    """Returns whether a letter can stand inside a word; punctuation and Chinese cannot."""
    text = tokenizer.normalizer.normalize_str(f"a{letter}")
    return len(tokenizer.pre_tokenizer.pre_tokenize_str(text)) == 1
