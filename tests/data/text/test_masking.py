"""Masked windows: what is masked, how often, and the same draws each time."""

from collections import Counter

import keras
import numpy as np
import pytest
from refused import refused

from keras_gmlp.data.text import (
    MaskedBatches,
    Tokenizer,
    build_corpus,
    masked_windows,
    validation_set,
)
from keras_gmlp.data.text.masking import draw_masks, mask_windows, read_windows

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]
LENGTH = 64


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Documents of 1 to 60 paragraphs, with words that the vocabulary lacks."""
    folder = tmp_path_factory.mktemp("corpus")
    draw = np.random.default_rng(0)
    documents = [
        "\n".join(" ".join(draw.choice(WORDS, draw.integers(1, 30))) + " \u4eac" for _ in range(n))
        for n in [*draw.integers(1, 60, 120), 1]
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


def drawn(corpus, length=LENGTH, rate=0.15, **options):
    """The masked windows of a corpus."""
    windows = corpus.windows(length)
    return masked_windows(corpus, windows, length, rate, np.random.default_rng(0), **options)


@pytest.fixture(scope="module")
def mask(corpus):
    """A function that masks the windows of given rows."""
    windows, generator = corpus.windows(LENGTH), np.random.default_rng(0)
    return lambda rate=0.15, cut=0.0, rows=...: masked_windows(
        corpus, windows[rows], LENGTH, rate, generator, cut
    )


def many(corpus, repeat=30):
    """The numbers of all windows, again and again."""
    return np.tile(np.arange(len(corpus.windows(LENGTH))), repeat)


def test_windows_are_the_text(corpus, mask):
    for row, (start, stop) in zip(restore(mask()), corpus.windows(LENGTH), strict=True):
        text = corpus.tokens[start:stop].tolist()
        end = [] if text[-1] == 3 else [3]
        assert row.tolist() == [2, *text, *end] + [0] * (LENGTH - 1 - len(text) - len(end))


@pytest.mark.parametrize("rate", [0.15, 0.3])
def test_rates(corpus, mask, rate):
    item = mask(rate, rows=many(corpus))
    (inputs, targets, weights), original = item, restore(item)
    ordinary = ~np.isin(original, range(5))
    masked = weights > 0
    assert abs(masked.sum() / ordinary.sum() - rate) < 0.005
    now = np.take_along_axis(inputs["token_ids"], inputs["mask_positions"], 1)[masked]
    kept, masks = now == targets[masked], now == 4
    random_and_equal = 0.1 / (corpus.info["vocabulary_size"] - 5)
    assert abs(masks.mean() - 0.8) < 0.005
    assert abs(kept.mean() - 0.1 - random_and_equal) < 0.005
    # Every ordinary token is drawn, and about equally often.
    others = np.bincount(now[~kept & ~masks], minlength=corpus.info["vocabulary_size"])
    assert not others[:5].any()
    assert others[5:].min() > 0.7 * others[5:].mean()


def test_special_tokens_are_never_chosen(corpus, mask):
    item = mask(0.9, rows=many(corpus, 4))
    (inputs, targets, weights), original = item, restore(item)
    assert 1 in original  # an unknown word
    assert not np.isin(targets[weights > 0], range(5)).any()
    special = np.isin(original, range(5))
    assert (inputs["token_ids"][special] == original[special]).all()


def test_positions_are_used_once_and_anywhere(corpus, mask):
    item = mask(0.3, rows=many(corpus, 4))
    inputs, targets, weights = item
    assert (weights.any(axis=1) == (restore(item) > 4).any(axis=1)).all()
    for positions, used in zip(inputs["mask_positions"], weights > 0, strict=True):
        assert len(set(positions[used])) == used.sum()
    assert not inputs["mask_positions"][weights == 0].any()
    assert not targets[weights == 0].any()
    counts = np.bincount(inputs["mask_positions"][weights > 0], minlength=LENGTH)
    assert (counts[1:40] > 0).all()


def test_a_tenth_of_the_windows_is_cut(corpus, mask):
    windows = corpus.windows(LENGTH)
    (full,) = np.nonzero(windows[:, 1] - windows[:, 0] == LENGTH - 2)
    item = mask(cut=0.1, rows=np.repeat(full[:50], 200))
    sizes = np.count_nonzero(restore(item), axis=1)
    short = sizes < LENGTH - 1  # there the last token is a [SEP]
    assert abs(short.mean() - 0.1) < 0.01
    assert sizes[short].min() in (7, 8)
    assert np.unique(sizes[short]).size > 50
    assert (np.count_nonzero(item[2], axis=1) >= 1).all()


def test_jax_masks_the_same_tokens(corpus):
    jax = pytest.importorskip("jax")
    tokens, sizes = read_windows(corpus, corpus.windows(LENGTH), LENGTH)
    numbers = draw_masks(corpus, len(tokens), LENGTH, 0.3, np.random.default_rng(0))
    given, how = (tokens, sizes, numbers), (corpus, 0.3, 0.1)
    found = jax.jit(lambda *given: mask_windows(*given, *how, jax.numpy))(*given)
    expected = mask_windows(*given, *how, np)
    keras.tree.map_structure(np.testing.assert_array_equal, tuple(found), expected)


def test_same_seed_same_batches(corpus):
    first, again, other = (MaskedBatches(corpus, 16, 32, seed=seed) for seed in (3, 3, 4))
    for index in (1, 0):  # in any order
        assert same(first[index], again[index])
        assert not same(first[index], other[index])
    assert not same(first[0], first[1])


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
    counted = Counter(row.tobytes() for row in restore(drawn(corpus, 32, cut=0)))
    assert steps == counted.total() // 16
    for order in passes:
        assert Counter(order) <= counted


def test_resumed_run_sees_what_it_would_have_seen(corpus):
    ids = keras.Input((32,), name="token_ids", dtype="int32")
    positions = keras.Input((5,), name="mask_positions", dtype="int32")
    # Each position counts, so that another order of the batches gives other weights.
    x = keras.layers.Embedding(128, 4)(ids)[:, :5] + keras.layers.Embedding(32, 4)(positions)
    x = keras.layers.Dense(128)(x)
    model = keras.Model({"token_ids": ids, "mask_positions": positions}, x)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(1.0), loss)  # which keeps no state
    initial = model.get_weights()

    def fit(weights, first, last):
        model.set_weights(weights)
        options = {"steps_per_epoch": 3, "shuffle": False, "verbose": 0}
        batches = MaskedBatches(corpus, 16, 32, start=3 * first)
        model.fit(batches, initial_epoch=first, epochs=last, **options)
        return model.get_weights()

    unbroken, stopped = fit(initial, 0, 4), fit(initial, 0, 2)
    resumed, batches = fit(stopped, 2, 4), MaskedBatches(corpus, 16, 32)
    model.set_weights(initial)
    for step in range(12):
        model.train_on_batch(*batches[step])
    for other in (resumed, model.get_weights()):
        for a, b in zip(unbroken, other, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-6)
    assert max(np.abs(a - b).max() for a, b in zip(unbroken, stopped, strict=True)) > 1e-2


def test_validation_set_stays_the_same(corpus):
    first = validation_set(corpus, 32, 0.15)
    (path,) = corpus.folder.glob("validation-32-*.npz")
    changed = path.stat().st_mtime_ns
    stored = validation_set(corpus, 32, 0.15)
    assert path.stat().st_mtime_ns == changed
    assert same(first, stored)
    path.unlink()
    assert same(first, validation_set(corpus, 32, 0.15))
    assert not same(first, validation_set(corpus, 32, 0.15, seed=1))
    assert (restore(first) == restore(drawn(corpus, 32, cut=0))).all()


def test_errors_are_one_line(corpus):
    for arguments, match in (
        ({"batch_size": 10**6}, "fewer than a batch"),
        ({"rate": 15}, "rate is 15"),
        ({"seed": -1}, "seed is -1"),
    ):
        with refused(match):
            MaskedBatches(corpus, **{"batch_size": 16, **arguments})


def same(a, b):
    """Returns whether two items are equal, with equal types."""
    flat = [[*item[0].values(), *item[1:]] for item in (a, b)]
    return all((x == y).all() and x.dtype == y.dtype for x, y in zip(*flat, strict=True))
