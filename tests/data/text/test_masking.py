"""Masked windows: what is masked, how often, and the same draws each time."""

import functools

import keras
import numpy as np
import pytest

from keras_gmlp.data.text import (
    MaskedBatches,
    Tokenizer,
    build_corpus,
    masked_windows,
    validation_set,
)
from keras_gmlp.data.text.masking import device_windows, make_device_masker, most_masks

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]
LENGTH, RATE = 64, 0.15  # of the tests on the device


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


def drawn(corpus, length=64, rate=0.15, seed=0, repeat=4, **options):
    windows = np.concatenate([corpus.windows(length)] * repeat)
    return masked_windows(corpus, windows, length, rate, np.random.default_rng(seed), **options)


def test_windows_are_the_text(corpus):
    ids = restore(drawn(corpus, repeat=1, cut=0))
    windows = corpus.windows(64)
    for row, (start, stop) in zip(ids, windows, strict=True):
        text = corpus.tokens[start:stop].tolist()
        end = [] if text[-1] == 3 else [3]
        assert row.tolist() == [2, *text, *end] + [0] * (63 - len(text) - len(end))


def test_shapes_and_types(corpus):
    inputs, targets, weights = drawn(corpus, length=32, rate=0.2, repeat=1)
    rows = len(corpus.windows(32))
    assert most_masks(32, 0.2) == 6
    for array, kind, width in [
        (inputs["token_ids"], "int32", 32),
        (inputs["mask_positions"], "int32", 6),
        (targets, "int32", 6),
        (weights, "float32", 6),
    ]:
        assert (array.shape, array.dtype) == ((rows, width), kind)


@pytest.mark.parametrize("rate", [0.15, 0.3])
def test_rates(corpus, rate):
    item = drawn(corpus, rate=rate, repeat=60)
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


def test_special_tokens_are_never_chosen(corpus):
    item = drawn(corpus, rate=0.9)
    (inputs, targets, weights), original = item, restore(item)
    assert 1 in original  # an unknown word
    assert not np.isin(targets[weights > 0], range(5)).any()
    special = np.isin(original, range(5))
    assert (inputs["token_ids"][special] == original[special]).all()


def test_positions_are_used_once_and_anywhere(corpus):
    item = drawn(corpus, rate=0.3)
    inputs, targets, weights = item
    assert (weights.any(axis=1) == (restore(item) > 4).any(axis=1)).all()
    for positions, used in zip(inputs["mask_positions"], weights > 0, strict=True):
        assert len(set(positions[used])) == used.sum()
    assert not inputs["mask_positions"][weights == 0].any()
    assert not targets[weights == 0].any()
    counts = np.bincount(inputs["mask_positions"][weights > 0], minlength=64)
    assert (counts[1:40] > 0).all()


def test_a_tenth_of_the_windows_is_cut(corpus):
    windows = corpus.windows(64)
    full = windows[windows[:, 1] - windows[:, 0] == 62]
    rows = np.repeat(full[:50], 200, axis=0)
    item = masked_windows(corpus, rows, 64, 0.15, np.random.default_rng(0))
    sizes = np.count_nonzero(restore(item), axis=1)
    short = sizes < 63  # 63: the last token is a [SEP]
    assert abs(short.mean() - 0.1) < 0.01
    assert sizes[short].min() in (7, 8)
    assert np.unique(sizes[short]).size > 50
    assert (np.count_nonzero(item[2], axis=1) >= 1).all()


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
    assert passes[0] != passes[1]
    everything = restore(drawn(corpus, 32, repeat=1, cut=0))
    counted = {row.tobytes(): 0 for row in everything}
    for row in everything:
        counted[row.tobytes()] += 1
    assert steps == len(everything) // 16
    for order in passes:
        assert all(order.count(row) <= counted[row] for row in set(order))


def make_model():
    keras.utils.set_random_seed(0)
    ids = keras.Input((32,), name="token_ids", dtype="int32")
    positions = keras.Input((5,), name="mask_positions", dtype="int32")
    # Each position counts, so that another order of the batches gives other weights.
    x = keras.layers.Embedding(128, 4)(ids)[:, :5] + keras.layers.Embedding(32, 4)(positions)
    x = keras.layers.Dense(128)(x)
    model = keras.Model({"token_ids": ids, "mask_positions": positions}, x)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(1.0), loss)
    return model


def test_resumed_run_sees_what_it_would_have_seen(corpus):
    def fit(model, initial_epoch, epochs):
        batches = MaskedBatches(corpus, 16, 32, start=3 * initial_epoch)
        model.fit(
            batches,
            steps_per_epoch=3,
            initial_epoch=initial_epoch,
            epochs=epochs,
            shuffle=False,
            verbose=0,
        )
        return model.get_weights()

    unbroken = fit(make_model(), 0, 4)
    stopped = fit(make_model(), 0, 2)
    resumed = make_model()
    resumed.set_weights(stopped)
    by_hand, batches = make_model(), MaskedBatches(corpus, 16, 32)
    for step in range(12):
        by_hand.train_on_batch(*batches.batch(step))
    for other in (fit(resumed, 2, 4), by_hand.get_weights()):
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
    assert (restore(first) == restore(drawn(corpus, 32, repeat=1, cut=0))).all()


def test_errors_are_one_line(corpus):
    with pytest.raises(ValueError, match=r"has [\d,]+ windows of 64 tokens, fewer than a batch of"):
        MaskedBatches(corpus, 10**6, 64)
    with pytest.raises(ValueError, match="the masking rate is 15; expected above 0 to 1"):
        MaskedBatches(corpus, 16, rate=15)
    with pytest.raises(ValueError, match="seed is -1; expected 0 or more"):
        MaskedBatches(corpus, 16, seed=-1)


def same(a, b):
    """Returns whether two items are equal, with equal types."""
    flat = [[*item[0].values(), *item[1:]] for item in (a, b)]
    return all((x == y).all() and x.dtype == y.dtype for x, y in zip(*flat, strict=True))


@pytest.fixture(scope="module")
def masked(corpus):
    """Masks windows on the device, with and without cut ones."""
    jax = pytest.importorskip("jax")

    @functools.cache  # compiles once for all seeds
    def masker(cut):
        return jax.jit(make_device_masker(corpus, LENGTH, RATE, cut))

    def draw(cut, position=0, seed=0, rows=None):
        tokens, sizes = device_windows(corpus, LENGTH)
        tokens, sizes = tokens[:rows], sizes[:rows]
        key = jax.random.key(seed)
        inputs, targets, weights = masker(cut)(key, tokens, sizes, position, True)
        inputs = {name: np.asarray(array) for name, array in inputs.items()}
        return inputs, np.asarray(targets), np.asarray(weights)

    return draw


def test_device_windows_are_the_text(corpus, masked):
    ids = restore(masked(cut=0.0))
    for row, (start, stop) in zip(ids, corpus.windows(LENGTH), strict=True):
        text = corpus.tokens[start:stop].tolist()
        end = [] if text[-1] == 3 else [3]
        assert row.tolist() == [2, *text, *end] + [0] * (LENGTH - 1 - len(text) - len(end))


def test_device_rates(corpus, masked):
    changed = kept = random = total = eligible = 0
    for seed in range(20):
        item = masked(cut=0.0, seed=seed)
        (inputs, targets, weights), original = item, restore(item)
        ids, places = inputs["token_ids"], inputs["mask_positions"]
        rows, columns = np.nonzero(weights)
        new, old = ids[rows, places[rows, columns]], targets[rows, columns]
        total += len(rows)
        changed += (new == 4).sum()
        kept += (new == old).sum()
        random += ((new != old) & (new != 4)).sum()
        eligible += (original > 4).sum()
        assert (old > 4).all()
        assert (new >= 4).all()
        assert weights.shape[1] == most_masks(LENGTH, RATE)
        # No position twice in a text.
        assert len({*zip(rows, places[rows, columns], strict=True)}) == len(rows)
    assert total / eligible == pytest.approx(RATE, abs=0.005)
    words = corpus.info["vocabulary_size"] - 5
    assert changed / total == pytest.approx(0.8, abs=0.01)
    assert kept / total == pytest.approx(0.1 + 0.1 / words, abs=0.01)
    assert random / total == pytest.approx(0.1 - 0.1 / words, abs=0.01)


def test_device_cuts_a_tenth_of_the_windows(masked):
    whole = (restore(masked(cut=0.0)) > 0).sum(axis=1)
    cut = np.stack([(restore(masked(cut=0.1, seed=s)) > 0).sum(axis=1) for s in range(20)])
    shorter = cut < whole
    full = whole == LENGTH
    assert shorter[:, full].mean() == pytest.approx(0.1, abs=0.02)
    assert cut[shorter].min() >= 7  # [SEP] at the cut is the paragraph's own
    assert (cut <= whole).all()


def test_device_draws_follow_the_key_and_the_place(masked):
    first, again, other = masked(0.1), masked(0.1), masked(0.1, seed=1)
    assert same(first, again)
    assert not same(first, other)
    # A batch that starts later draws what the whole epoch draws at its places.
    assert not same(first, masked(0.1, position=1))
    (inputs, *rest), part = first, masked(0.1, rows=5)
    assert same(part, ({n: array[:5] for n, array in inputs.items()}, *(a[:5] for a in rest)))
