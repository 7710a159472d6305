"""From text to token ids, and back; requires the package `tokenizers`, no Keras."""

import dataclasses
import hashlib
import json
import os
from collections import Counter
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from unicodedata import category

import numpy as np

from keras_gmlp.data.text.files import PIECE, cut_text, find_files, read_lines, read_pieces
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
        ValueError: If the text is another tokenizer than a BERT's: exactly what `save` writes and
            what published BERTs have is accepted. One line.
        ImportError: If the package `tokenizers` is not installed. One line.

    Example:

    >>> from keras_gmlp.data.text import Tokenizer
    >>> tokenizer = Tokenizer.train(["the cat and the hat", "a hat"], vocabulary_size=128)
    >>> tokenizer.decode(tokenizer.encode("The hat").ids)
    'the hat'
    """

    def __init__(self, text, source="tokenizer.json"):
        self.text = text
        self._vocabulary, self._steps = read_wordpiece(text, source)
        # Of the special tokens only [MASK] may be written in a text; all others are plain text.
        self._tokens = make_wordpiece(self._vocabulary, **self._steps, special=["[MASK]"])
        ids = [self._vocabulary[name] for name in SPECIAL_TOKENS]
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = ids
        if self.pad_id != 0:
            raise ValueError(
                f"{source}: the id of [PAD] is {self.pad_id}; expected 0, which models ignore."
            )

    @classmethod
    def train(
        cls, files_or_lines, vocabulary_size=16384, lowercase=True, state=None, strip_accents=False
    ):
        """Learns a vocabulary; the same text gives the same one.

        Args:
            files_or_lines: A text file, a pattern such as `"wiki/*.txt"`, a list of files, or the
                texts themselves. Strings are files if each ends in `.txt` or `.txt.xz`.
            vocabulary_size: Number of tokens, at most: a short text gives fewer. The special tokens
                `[PAD]`, `[UNK]`, `[CLS]`, `[SEP]`, `[MASK]` have the ids 0 to 4.
            lowercase: Whether to lower letters.
            state: Called with a line of text at the start of each stage.
            strip_accents: Whether to strip all marks of letters, as BERT does: accents, but also
                those of Japanese, Hindi and Thai, without which many words are equal.

        Returns:
            A `Tokenizer`.
        """
        if isinstance(files_or_lines, (str, os.PathLike)):
            files_or_lines = find_files(files_or_lines)
        items = list(files_or_lines)
        if items and all(map(_names_file, items)):
            items = [piece for path in find_files(items) for piece, _ in read_pieces(path)]
        trained = train_wordpiece(items, vocabulary_size, lowercase, state, strip_accents)
        return cls(trained.to_str(pretty=True))

    @classmethod
    def from_vocabulary(cls, path, lowercase=True, strip_accents=None):
        """Opens BERT's `vocab.txt`: one token a line, whose number is its id.

        Accents are stripped if letters are lowered, unless `strip_accents` says otherwise.
        """
        tokens = list(read_lines(path))
        ids = {token: number for number, token in enumerate(tokens)}
        if len(ids) < len(tokens):
            twice = next(token for number, token in enumerate(tokens) if ids[token] != number)
            raise ValueError(f"{path}: has {twice!r} on two lines; expected each token once.")
        if lacking := [name for name in SPECIAL_TOKENS if name not in ids]:
            raise ValueError(f"{path}: lacks {', '.join(lacking)}; expected a vocab.txt of BERT.")
        return cls(make_wordpiece(ids, lowercase, strip_accents).to_str(pretty=True), path)

    @classmethod
    def load(cls, path):
        """Opens a `tokenizer.json`, or a `vocab.txt` by its suffix."""
        if Path(path).suffix.lower() == ".txt":
            return cls.from_vocabulary(path)
        try:
            with open(path, "rb") as file:
                content = file.read(MOST_BYTES + 1)
            if len(content) > MOST_BYTES:
                raise ValueError(
                    f"{path}: has more than {MOST_BYTES:,} bytes; expected a tokenizer.json."
                )
            return cls(content.decode(), path)
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: not UTF-8 at byte {error.start:,}.") from None
        except FileNotFoundError:
            raise ValueError(f"{path}: no such file; expected a tokenizer.json.") from None

    def has_steps(self, lowercase, strip_accents):
        """Returns whether the tokenizer lowers letters and strips their marks as given."""
        strips = self._steps["strip_accents"]
        strips = self._steps["lowercase"] if strips is None else strips
        return (self._steps["lowercase"], strips) == (lowercase, strip_accents)

    def save(self, path):
        """Writes a `tokenizer.json`; a loaded one stays the same byte for byte."""
        with atomic_write(path) as temporary:
            temporary.write_bytes(self.text.encode())

    def to_bert(self):
        """Returns the `tokenizers.Tokenizer` that adds `[CLS]` and `[SEP]`, as BERT's does."""
        tokens = make_wordpiece(self._vocabulary, **self._steps)
        ends = ("[SEP]", self.sep_id), ("[CLS]", self.cls_id)
        tokens.post_processor = import_tokenizers().processors.BertProcessing(*ends)
        return tokens

    @cached_property
    def hash(self):
        """SHA-256 of the `tokenizer.json`, in hexadecimal digits."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def size(self):
        """Number of tokens in the vocabulary."""
        return len(self._vocabulary)

    @property
    def special_ids(self):
        """The ids of `[PAD]`, `[UNK]`, `[CLS]`, `[SEP]`, `[MASK]`."""
        return self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id

    @cached_property
    def tokens(self):
        """All tokens as text, by id."""
        return sorted(self._vocabulary, key=self._vocabulary.get)

    @cached_property
    def are_words(self):
        """Whether each token is a word: no piece inside a word, with a letter or a digit; bool."""
        found = np.array([bool(token) and is_word(token) for token in self.tokens])
        found[list(self.special_ids)] = False
        return found

    def encode(self, a, b=None, length=None):
        """Encodes `[CLS] a [SEP]` or `[CLS] a [SEP] b [SEP]`.

        Args:
            a, b: Texts. `[MASK]` in them is one token; other special tokens are plain text.
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
        short = [text for text in flat if len(text) <= PIECE]
        known = iter(self._tokens.encode_batch(short, add_special_tokens=False))
        parts = iter(
            [
                next(known) if len(text) <= PIECE else self._encode_long(text, length)
                for text in flat
            ]
        )
        return [self._join([next(parts) for _ in pair], length) for pair in pairs]

    def encode_plain(self, lines):
        """Returns the ids of each line as a list, without added tokens; `[MASK]` is plain text."""
        return [part.ids for part in self._plain.encode_batch_fast(lines, add_special_tokens=False)]

    def decode(self, ids, skip_special=True):
        """Returns the text of token ids, with normal spaces before and after words."""
        skipped = self.special_ids if skip_special else ()
        ids = [int(i) for i in ids if int(i) not in skipped]
        return self._tokens.decode(ids, skip_special_tokens=False)

    @cached_property
    def _plain(self):
        return make_wordpiece(self._vocabulary, **self._steps, special=())

    def _encode_long(self, text, most):
        """Encodes a long text piece by piece, which takes little memory; stops at most tokens."""
        ids, offsets, start = [], [np.zeros((0, 2), "int32")], 0
        for piece in cut_text(text):
            if piece.strip():
                part = self._tokens.encode(piece, add_special_tokens=False)
                ids += part.ids
                offsets.append(np.array(part.offsets, "int32").reshape(-1, 2) + start)
            start += len(piece)
            if most is not None and len(ids) >= most:
                break
        return SimpleNamespace(ids=ids, offsets=np.concatenate(offsets))

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
MOST_TOKENS, MOST_BYTES = 2**20, 2**26  # of a published vocabulary
UNKNOWN = 0.0005  # share of the letters of a text that may have no token


def make_wordpiece(
    vocabulary, lowercase=True, strip_accents=None, split=False, special=SPECIAL_TOKENS
):
    """Returns a `tokenizers.Tokenizer` with BERT's steps, which splits long words if asked."""
    tokenizers = import_tokenizers()
    steps = tokenizers.pre_tokenizers
    model = tokenizers.models.WordPiece(vocabulary, unk_token="[UNK]")
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer(
        lowercase=lowercase, strip_accents=strip_accents
    )
    tokenizer.pre_tokenizer = steps.BertPreTokenizer()
    if split:  # Thai has no spaces, and BERT takes a word of more than 100 letters for unknown
        parts = steps.Split(tokenizers.Regex(".{1,100}"), "isolated")
        tokenizer.pre_tokenizer = steps.Sequence([steps.BertPreTokenizer(), parts])
    tokenizer.decoder = tokenizers.decoders.WordPiece(prefix="##")
    tokenizer.add_special_tokens(list(special))
    return tokenizer


def read_wordpiece(text, source):
    """Returns the vocabulary and the other arguments that `make_wordpiece` made a text from.

    Nothing else is accepted: the package `tokenizers` runs what a file says, such as a pattern that
    takes for ever.
    """
    try:
        content = json.loads(text)
        _require_object("content", content)
        for part in ("model", "normalizer", "pre_tokenizer", "decoder"):
            _require_object(part, content[part])
        _require_object("vocab", content["model"]["vocab"])
        vocabulary, normalizer = content["model"].pop("vocab"), content["normalizer"]
        steps = {
            "lowercase": normalizer["lowercase"],
            "strip_accents": normalizer["strip_accents"],
            "split": content["pre_tokenizer"]["type"] == "Sequence",
        }
        if lacking := [name for name in SPECIAL_TOKENS if name not in vocabulary]:
            raise ValueError(
                f"the vocabulary lacks {', '.join(lacking)}; expected BERT's special tokens, "
                f"{', '.join(SPECIAL_TOKENS)}"
            )
        _check_vocabulary(vocabulary)
        few = {name: vocabulary[name] for name in SPECIAL_TOKENS}
        expected = json.loads(make_wordpiece(few, **steps).to_str())
        content["model"].setdefault("type", "WordPiece")  # older files leave it out
        del expected["model"]["vocab"]
        for part in ("model", "normalizer", "pre_tokenizer", "decoder", "added_tokens"):
            _require_equal(part, content[part], expected[part])
    except KeyError as error:
        raise ValueError(
            f"{source}: not a tokenizer.json of BERT's WordPiece (no {error})."
        ) from None
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        reason = " ".join(str(error).split())[:300]
        raise ValueError(
            f"{source}: not a tokenizer.json of BERT's WordPiece ({reason})."
        ) from None
    return vocabulary, steps


def _require_object(part, found):
    """Raises a `ValueError` if a part of a tokenizer is no object of JSON."""
    if not isinstance(found, dict):
        raise ValueError(f"the {part} is of type {type(found).__name__}; expected an object")


def _check_vocabulary(vocabulary):
    """Raises a `ValueError` if the tokens are not text, or their ids not 0 to n - 1."""
    if len(vocabulary) > MOST_TOKENS:
        raise ValueError(f"{len(vocabulary):,} tokens; expected at most {MOST_TOKENS:,}")
    "".join(vocabulary).encode()  # half a surrogate pair is no text
    ids = vocabulary.values()
    if not all(type(i) is int for i in ids) or sorted(ids) != list(range(len(ids))):
        raise ValueError(f"the ids of its {len(ids):,} tokens are not 0 to {len(ids) - 1:,}")


def _require_equal(part, found, expected):
    """Raises a `ValueError` if a part of a tokenizer is another one."""
    if part == "added_tokens":  # in any order; the error names those that differ
        sides = (found, expected), (expected, found)
        found, expected = ([token for token in a if token not in b] for a, b in sides)
    if part == "decoder":
        found = {**found, "cleanup": True}  # only of spaces before punctuation
    if found != expected:
        raise ValueError(f"the {part} is {found!s:.80}; expected {expected!s:.80}")


def train_wordpiece(lines, size, lowercase=True, state=None, strip_accents=False):
    """Learns a vocabulary from text; the same text gives the same vocabulary."""
    if not MIN_SIZE <= size <= MAX_SIZE:
        raise ValueError(
            f"vocabulary_size is {size:,}; expected {MIN_SIZE:,} to {MAX_SIZE:,}, such as 8,192."
        )
    tokenizers = import_tokenizers()
    state = state or (lambda text: None)
    steps = {"lowercase": lowercase, "strip_accents": strip_accents, "split": True}
    blank = make_wordpiece({token: i for i, token in enumerate(SPECIAL_TOKENS)}, **steps)
    state("counting letters")
    frequent, rare = _rank_letters(lines, blank, size)
    letters = sorted(frequent)
    # A letter takes two tokens: at the start of a word, and inside.
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
    vocabulary = blank.get_vocab(with_added_tokens=False)
    for letter in rare:  # what the words leave free is theirs
        tokens = [letter, f"##{letter}"][: 1 + _continues(letter, blank)]
        if len(vocabulary) + len(tokens) > size:
            break
        for token in tokens:
            vocabulary.setdefault(token, len(vocabulary))
    return make_wordpiece(vocabulary, **steps)


def describe_unknown(share):
    """Returns a line of text if a share of unknown tokens is high, else an empty one."""
    if share <= 0.01:
        return ""
    return (
        f"{100 * share:.1f} % of the tokens are unknown to the tokenizer, and lost. Train one on "
        "text of this language, with a larger vocabulary (--vocabulary-size)."
    )


def import_tokenizers():
    """Imports the package `tokenizers`, or raises an `ImportError` that says how to install it."""
    return require("tokenizers", "text", "text")


def _rank_letters(lines, blank, size):
    """Returns the letters that a vocabulary of a size holds at least, and the rarer ones."""
    counts = Counter()
    for line in lines:
        counts.update(blank.normalizer.normalize_str(line))
    for letter in [letter for letter in counts if letter.isspace()]:
        del counts[letter]
    if not counts:
        raise ValueError("the text is empty; a tokenizer learns from at least one word.")
    ranked = sorted(counts, key=lambda letter: (-counts[letter], letter))
    kept = max(size // 16, min(100, size // 3))
    unknown = sum(counts[letter] for letter in ranked[kept:])
    room = 3 * size // 4 - 2 * kept  # the rest is for words
    # Chinese and Korean have thousands of letters: few of a text may be unknown.
    while kept < len(ranked) and unknown > UNKNOWN * counts.total() and room > 0:
        unknown -= counts[ranked[kept]]
        room -= 1 + _continues(ranked[kept], blank)
        kept += 1
    return ranked[:kept], ranked[kept:]


def _continues(letter, tokenizer):
    """Returns whether a letter can stand inside a word; punctuation and Chinese cannot."""
    text = tokenizer.normalizer.normalize_str(f"a{letter}")
    return len(tokenizer.pre_tokenizer.pre_tokenize_str(text)) == 1
