"""Masks drawn on a device by JAX: the same rules as those of NumPy."""

import functools

import numpy as np
import pytest

from keras_gmlp.data.text import Tokenizer, build_corpus
from keras_gmlp.data.text.masking import device_windows, make_device_masker, most_masks

jax = pytest.importorskip("jax")

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]
LENGTH, RATE = 64, 0.15


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    draw = np.random.default_rng(0)
    documents = [
        "\n".join(" ".join(draw.choice(WORDS, draw.integers(1, 30))) for _ in range(n))
        for n in [*draw.integers(1, 60, 90), 1]
    ]
    (folder / "a.txt").write_text("\n\n".join(documents))
    return build_corpus(folder / "a.txt", Tokenizer.train([" ".join(WORDS)] * 3, 128), folder)


@pytest.fixture(scope="module")
def masked(corpus):
    """Draws with and without cut windows, and the texts before masking."""

    @functools.cache  # compiles once for all seeds
    def masker(cut):
        return jax.jit(make_device_masker(corpus, LENGTH, RATE, cut))

    def draw(cut, position=0, seed=0, rows=None):
        tokens, sizes = device_windows(corpus, LENGTH)
        tokens, sizes = tokens[:rows], sizes[:rows]
        key = jax.random.key(seed)
        inputs, targets, weights = masker(cut)(key, tokens, sizes, position, True)
        ids, places = (np.asarray(inputs[name]) for name in ("token_ids", "mask_positions"))
        return ids, places, np.asarray(targets), np.asarray(weights)

    return draw


def restore(ids, places, targets, weights):
    ids = ids.copy()
    rows, columns = np.nonzero(weights)
    ids[rows, places[rows, columns]] = targets[rows, columns]
    return ids


def test_windows_are_the_text(corpus, masked):
    ids = restore(*masked(cut=0.0))
    for row, (start, stop) in zip(ids, corpus.windows(LENGTH), strict=True):
        text = corpus.tokens[start:stop].tolist()
        end = [] if text[-1] == 3 else [3]
        assert row.tolist() == [2, *text, *end] + [0] * (LENGTH - 1 - len(text) - len(end))


def test_rates(corpus, masked):
    changed = kept = random = total = eligible = 0
    for seed in range(20):
        ids, places, targets, weights = masked(cut=0.0, seed=seed)
        rows, columns = np.nonzero(weights)
        new, old = ids[rows, places[rows, columns]], targets[rows, columns]
        total += len(rows)
        changed += (new == 4).sum()
        kept += (new == old).sum()
        random += ((new != old) & (new != 4)).sum()
        eligible += (restore(ids, places, targets, weights) > 4).sum()
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


def test_a_tenth_of_the_windows_is_cut(masked):
    whole = (restore(*masked(cut=0.0)) > 0).sum(axis=1)
    cut = np.stack([(restore(*masked(cut=0.1, seed=s)) > 0).sum(axis=1) for s in range(20)])
    shorter = cut < whole
    full = whole == LENGTH
    assert shorter[:, full].mean() == pytest.approx(0.1, abs=0.02)
    assert cut[shorter].min() >= 7  # [SEP] at the cut is the paragraph's own
    assert (cut <= whole).all()


def test_draws_follow_the_key_and_the_place(masked):
    first, again, other = masked(0.1), masked(0.1), masked(0.1, seed=1)
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(first[0], other[0])
    # A batch that starts later draws what the whole epoch draws at its places.
    later = masked(0.1, position=1)
    assert not np.array_equal(later[0], first[0])
    part = masked(0.1, rows=5)
    for a, b in zip(first, part, strict=True):
        np.testing.assert_array_equal(a[:5], b)
