"""BERT's WordPiece: made from a vocabulary, read from a stranger's file, learned from text."""

import json
from collections import Counter

from keras_gmlp.utils.environment import require
from keras_gmlp.utils.errors import first_line

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PARTS = ("model", "normalizer", "pre_tokenizer", "decoder", "added_tokens")  # of a tokenizer.json
MIN_SIZE, MAX_SIZE = 128, 2**16  # a corpus stores 16 bits a token
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
    if split:  # Thai has no spaces, and to BERT a word of more than 100 letters is unknown
        parts = steps.Split(tokenizers.Regex(".{1,100}"), "isolated")
        tokenizer.pre_tokenizer = steps.Sequence([steps.BertPreTokenizer(), parts])
    tokenizer.decoder = tokenizers.decoders.WordPiece(prefix="##")
    tokenizer.add_special_tokens(list(special))
    return tokenizer


def read_wordpiece(text, source):
    """Returns the vocabulary and the other arguments that `make_wordpiece` made a text from.

    Nothing else is accepted: the package `tokenizers` runs what a file says, such as a pattern that
    never ends.
    """
    try:
        content = json.loads(text)
        vocabulary, normalizer = content["model"]["vocab"], content["normalizer"]
        if sorted(vocabulary.values()) != list(range(len(vocabulary))):
            raise ValueError(f"the ids of its tokens are not 0 to {len(vocabulary) - 1:,}")
        if vocabulary["[PAD]"] != 0 or not vocabulary.keys() >= set(SPECIAL_TOKENS):
            raise ValueError(f"lacks one of {SPECIAL_TOKENS}, or the first has not the id 0")
        steps = {name: normalizer[name] for name in ("lowercase", "strip_accents")}
        steps["split"] = content["pre_tokenizer"]["type"] == "Sequence"
        expected = json.loads(make_wordpiece(vocabulary, **steps).to_str())
        content["model"].setdefault("type", "WordPiece")  # older files leave it out
        content["decoder"]["cleanup"] = True  # only of spaces before punctuation
        content["added_tokens"].sort(key=lambda token: token["id"])
        expected["added_tokens"].sort(key=lambda token: token["id"])
        if wrong := [part for part in PARTS if content[part] != expected[part]]:
            raise ValueError(f"its {' and '.join(wrong)} differ")
    except Exception as error:  # of any type, as what a file holds
        raise ValueError(
            f"{source}: not a tokenizer.json of BERT's WordPiece ({first_line(error)})."
        ) from None
    return vocabulary, steps


def train_wordpiece(lines, size, lowercase=True, strip_accents=False):
    """Learns a vocabulary from text; the same text gives the same vocabulary."""
    if not MIN_SIZE <= size <= MAX_SIZE:
        raise ValueError(
            f"vocabulary_size is {size:,}; expected {MIN_SIZE:,} to {MAX_SIZE:,}, such as 8,192."
        )
    tokenizers = import_tokenizers()
    steps = {"lowercase": lowercase, "strip_accents": strip_accents, "split": True}
    blank = make_wordpiece({token: i for i, token in enumerate(SPECIAL_TOKENS)}, **steps)
    letters = sorted(_choose_letters(lines, blank, size))
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
    blank.train_from_iterator(lines, trainer)
    return make_wordpiece(blank.get_vocab(with_added_tokens=False), **steps)


def import_tokenizers():
    """Imports the package `tokenizers`, or raises an `ImportError` that says how to install it."""
    return require("tokenizers", "text", "text")


def _choose_letters(lines, blank, size):
    """Returns the letters that a vocabulary of a size holds, the most frequent ones."""
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
    return ranked[:kept]


def _continues(letter, tokenizer):
    """Returns whether a letter can stand inside a word; punctuation and Chinese cannot."""
    text = tokenizer.normalizer.normalize_str(f"a{letter}")
    return len(tokenizer.pre_tokenizer.pre_tokenize_str(text)) == 1
