"""BERT's WordPiece: made from a vocabulary, read from a stranger's file, learned from text."""

import json
from collections import Counter

from keras_gmlp.utils.environment import require

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PARTS = ("model", "normalizer", "pre_tokenizer", "decoder")  # of a tokenizer.json
MIN_SIZE, MAX_SIZE = 128, 2**16  # a corpus stores 16 bits a token
MOST_TOKENS, MOST_BYTES = 2**20, 2**26  # of a published vocabulary
UNKNOWN = 0.0005  # share of the letters of a text that may have no token


def make_wordpiece(
    vocabulary, lowercase=True, strip_accents=None, split=False, special=SPECIAL_TOKENS
):
    """Returns a `tokenizers.Tokenizer` with BERT's steps, which splits long words if asked."""
    tokenizers = import_tokenizers()
    steps = tokenizers.pre_tokenizers
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocabulary, unk_token="[UNK]"))
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
        return _check_content(json.loads(text))
    except KeyError as error:
        reason = f"no {error}"
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        reason = " ".join(str(error).split())[:300]
    raise ValueError(f"{source}: not a tokenizer.json of BERT's WordPiece ({reason}).")


def _check_content(content):
    """Returns the vocabulary and the steps of a parsed `tokenizer.json`."""
    _require_object("content", content)
    for part in PARTS:
        _require_object(part, content[part])
    _require_object("vocab", content["model"]["vocab"])
    vocabulary, normalizer = content["model"].pop("vocab"), content["normalizer"]
    steps = {name: normalizer[name] for name in ("lowercase", "strip_accents")}
    steps["split"] = content["pre_tokenizer"]["type"] == "Sequence"
    if lacking := [name for name in SPECIAL_TOKENS if name not in vocabulary]:
        raise ValueError(
            f"the vocabulary lacks {', '.join(lacking)}; expected BERT's special tokens, "
            f"{', '.join(SPECIAL_TOKENS)}"
        )
    if len(vocabulary) > MOST_TOKENS:
        raise ValueError(f"{len(vocabulary):,} tokens; expected at most {MOST_TOKENS:,}")
    "".join(vocabulary).encode()  # half a surrogate pair is no text
    ids = vocabulary.values()
    if not all(type(i) is int for i in ids) or sorted(ids) != list(range(len(ids))):
        raise ValueError(f"the ids of its {len(ids):,} tokens are not 0 to {len(ids) - 1:,}")
    few = {name: vocabulary[name] for name in SPECIAL_TOKENS}
    expected = json.loads(make_wordpiece(few, **steps).to_str())
    del expected["model"]["vocab"]
    content["model"].setdefault("type", "WordPiece")  # older files leave it out
    content["decoder"]["cleanup"] = True  # only of spaces before punctuation
    # The added tokens may have any order; the error names those that differ.
    ours, theirs = expected["added_tokens"], content["added_tokens"]
    expected["added_tokens"] = [token for token in ours if token not in theirs]
    content["added_tokens"] = [token for token in theirs if token not in ours]
    for part in (*PARTS, "added_tokens"):
        found, wanted = content[part], expected[part]
        if found != wanted:
            raise ValueError(f"the {part} is {found!s:.80}; expected {wanted!s:.80}")
    return vocabulary, steps


def _require_object(part, found):
    """Raises a `ValueError` if a part of a tokenizer is no object of JSON."""
    if not isinstance(found, dict):
        raise ValueError(f"the {part} is of type {type(found).__name__}; expected an object")


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


def import_tokenizers():
    """Imports the package `tokenizers`, or raises an `ImportError` that says how to install it."""
    return require("tokenizers", "text", "text")


def _rank_letters(lines, blank, size):
    """Returns the letters that a vocabulary of a size holds at least, and the rarer ones."""
    counts = Counter()
    for line in lines:
        counts.update(blank.normalizer.normalize_str(line))
    counts = Counter({letter: n for letter, n in counts.items() if not letter.isspace()})
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
