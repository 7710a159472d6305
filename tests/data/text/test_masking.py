"""Masked windows: what is masked, how often, and the same draws each time."""

from collections import Counter

import keras
import numpy as np
import pytest

from keras_gmlp.data.text.corpus import build_corpus
from keras_gmlp.data.text.masking import (
    MaskedBatches,
    draw_masks,
    mask_windows,
    masked_windows,
    read_windows,
    validation_set,
)
from keras_gmlp.data.text.tokenizer import Tokenizer

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]
LENGTH = 64


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Documents of 1 to 60 paragraphs, with words that the vocabulary lacks."""
    folder = tmp_path_factory.mktemp("corpus")
    draw = np.random.default_rng(0)
    documents = [
        "\n".join(" ".join(draw.choice(WORDS, draw.integers(1, 30))) + " \u4eac" for _ in range(n))
        for n in [*draw.integers(1, 60, 40), 1]
    ]
    (folder / "a.txt").write_text("\n\n".join(documents), encoding="utf-8")
    return build_corpus(folder / "a.txt", Tokenizer.train([" ".join(WORDS)] * 3, 128), folder)


def restore(item):
    """The token ids before masking."""
    inputs, targets, weights = item
    ids = inputs["token_ids"].copy()
    rows, places = np.nonzero(weights)
    ids[rows, inputs["mask_positions"][rows, places]] = targets[rows, places]
    return ids


RATE, CUT, REPEATS = 0.3, 0.1, 8


def test_what_is_masked(corpus):
    windows = np.concatenate([corpus.windows(LENGTH)] * REPEATS)
    item = masked_windows(corpus, windows, LENGTH, RATE, np.random.default_rng(0), CUT)
    (inputs, targets, weights), original = item, restore(item)
    now, masked = inputs["token_ids"], weights > 0
    sizes = np.count_nonzero(original, axis=1)
    # The text is that of the window, or its start.
    for row, size, (start, stop) in zip(original, sizes, windows, strict=True):
        text = corpus.tokens[start:stop].tolist()[: size - 1]
        assert row.tolist() == [2, *text[: size - 2], 3] + [0] * (LENGTH - size)
    full = windows[:, 1] - windows[:, 0] == LENGTH - 2
    short = full & (sizes < LENGTH - 1)  # there the last token is a [SEP]
    assert abs(short.sum() / full.sum() - CUT) < 0.02
    assert sizes[short].min() in (7, 8)
    assert np.unique(sizes[short]).size > 40
    # Ordinary tokens are chosen, each once, and at least one of a window.
    assert 1 in original  # an unknown word
    special = np.isin(original, range(5))
    assert (now[special] == original[special]).all()
    assert not np.isin(targets[masked], range(5)).any()
    assert (masked.any(axis=1) == (~special).any(axis=1)).all()
    positions = inputs["mask_positions"]
    assert not positions[~masked].any()
    assert not targets[~masked].any()
    assert all(len(set(row[used])) == used.sum() for row, used in zip(positions, masked))  # noqa: B905
    assert (np.bincount(positions[masked], minlength=LENGTH)[1:40] > 0).all()
    assert abs(masked.sum() / (~special).sum() - RATE) < 0.01
    # 80 % are masks, 10 % are drawn from all ordinary tokens, and 10 % stay.
    new = np.take_along_axis(now, positions, 1)[masked]
    kept, masks = new == targets[masked], new == 4
    assert abs(masks.mean() - 0.8) < 0.005
    size = corpus.info["vocabulary_size"]
    assert abs(kept.mean() - 0.1 - 0.1 / (size - 5)) < 0.005
    others = np.bincount(new[~kept & ~masks], minlength=size)
    assert not others[:5].any()
    assert others[5:].min() > 0.6 * others[5:].mean()


def test_jax_masks_the_same_tokens(corpus):
    jax = pytest.importorskip("jax")
    tokens, sizes = read_windows(corpus, corpus.windows(LENGTH), LENGTH)
    numbers = draw_masks(corpus, len(tokens), LENGTH, RATE, np.random.default_rng(0))
    given, how = (tokens, sizes, numbers), (corpus, RATE, CUT)
    found = jax.jit(lambda *given: mask_windows(*given, *how, jax.numpy))(*given)
    keras.tree.map_structure(
        np.testing.assert_array_equal, tuple(found), mask_windows(*given, *how, np)
    )


def whole_windows(corpus):
    """The token ids of windows of 32 tokens."""
    windows = corpus.windows(32)
    return restore(masked_windows(corpus, windows, 32, 0.15, np.random.default_rng(0), cut=0))


def test_same_seed_same_batches(corpus):
    first, again, other = (MaskedBatches(corpus, 16, 32, seed=seed) for seed in (3, 3, 4))
    for index in (1, 0):  # in any order
        assert same(first[index], again[index])
        assert not same(first[index], other[index])
    assert not same(first[0], first[1])
    assert same(MaskedBatches(corpus, 16, 32, seed=3, start=5)[2], first[7])  # of a resumed run


def test_a_pass_reads_every_window_once_in_a_new_order(corpus):
    batches = MaskedBatches(corpus, 16, 32, cut=0)
    passes, steps = [], batches.pass_steps
    for first in (0, steps):
        rows = np.concatenate([restore(batches[i]) for i in range(first, first + steps)])
        passes.append([row.tobytes() for row in rows])
    inputs, targets, weights = batches[0]
    for array, kind, width in [
        (inputs["token_ids"], "int32", 32),
        (inputs["mask_positions"], "int32", 5),
        (targets, "int32", 5),
        (weights, "float32", 5),
    ]:
        assert (array.shape, array.dtype) == ((16, width), kind)
    assert passes[0] != passes[1]
    counted = Counter(row.tobytes() for row in whole_windows(corpus))
    assert steps == counted.total() // 16
    for order in passes:
        assert Counter(order) <= counted


def test_validation_set_stays_the_same(corpus):
    first = validation_set(corpus, 32, 0.15)
    assert same(first, validation_set(corpus, 32, 0.15))
    assert not same(first, validation_set(corpus, 32, 0.15, seed=1))
    assert (restore(first) == whole_windows(corpus)).all()


def same(a, b):
    """Returns whether two items are equal, with equal types."""
    flat = [[*item[0].values(), *item[1:]] for item in (a, b)]
    return all((x == y).all() and x.dtype == y.dtype for x, y in zip(*flat, strict=True))
