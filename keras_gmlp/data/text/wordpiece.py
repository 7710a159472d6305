"""WordPiece vocabularies: training, and the form that `tokenizers` reads."""

from collections import Counter

from keras_gmlp.utils.optional import require

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
MIN_SIZE, MAX_SIZE = 128, 2**16  # a corpus stores 16 bits a token


def make_wordpiece(vocabulary, lowercase=True):
    """Returns a `tokenizers.Tokenizer` with BERT's steps.

    Args:
        vocabulary: Dict from tokens to ids, with `SPECIAL_TOKENS`.
        lowercase: Whether to lower letters and strip accents.
    """
    tokenizers = import_tokenizers()
    model = tokenizers.models.WordPiece(vocabulary, unk_token="[UNK]")
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = tokenizers.decoders.WordPiece(prefix="##")
    tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
    return tokenizer


def train_wordpiece(lines, size, lowercase=True, state=None):
    """Learns a vocabulary from text; the same text gives the same vocabulary.

    Args:
        lines: List of texts.
        size: Number of tokens, at most.
        lowercase: Whether to lower letters and strip accents.
        state: Called with a line of text at the start of each stage.

    Returns:
        A `tokenizers.Tokenizer`; the ids of `SPECIAL_TOKENS` are 0 to 4.

    Raises:
        ValueError: If the size is out of range or the text has no letters. One line.
    """
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
