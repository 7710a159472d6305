import keras
import numpy as np
import pytest
from word_tokenizer import WordTokenizer

from keras_gmlp.data.text import TextData, TextSplit, classification_batches
from keras_gmlp.data.text.sentence_batches import TextBatches

TOKENIZER = WordTokenizer()
TEXTS = [f"text number {n}" for n in range(23)]


def toy():
    labels = np.arange(23) % 2
    return TextData("toy", ("a", "b"), TextSplit(TEXTS, labels), TextSplit(TEXTS[:7], labels[:7]))


def batches(**options):
    return classification_batches(toy(), TOKENIZER, length=8, batch_size=5, **options)


def seen(dataset, number):
    """Returns the texts of a pass."""
    steps = range(number * dataset.pass_steps, (number + 1) * dataset.pass_steps)
    return [tuple(row[1:5]) for step in steps for row in dataset[step][0].tolist()]


def test_batches_hold_texts_and_their_classes():
    dataset = batches(training=False)
    assert dataset.num_batches == 2
    (first, labels), (last, last_labels) = dataset
    assert (first.shape, first.dtype, labels.dtype) == ((5, 8), "int32", "int32")
    assert (last.shape, last_labels.tolist()) == ((2, 8), [1, 0])
    expected = np.stack([e.ids for e in TOKENIZER.encode_batch(TEXTS[:7], 8)])
    np.testing.assert_array_equal(np.concatenate([first, last]), expected)


def test_order_follows_seed_and_pass_alone():
    dataset = batches(seed=3)
    assert (dataset.pass_steps, dataset.num_batches) == (4, None)
    first, second = seen(dataset, 0), seen(dataset, 1)
    assert len(set(first)) == len(set(second)) == 20  # the last three texts fill no batch
    assert second != first
    assert seen(dataset, 0) == first
    assert seen(batches(seed=4), 0) != first
    resumed = batches(seed=3)
    resumed.start = 4
    assert seen(resumed, 0) == second


def test_labels_move_with_their_texts():
    dataset = batches(seed=0)
    rows = map(tuple, dataset.token_ids.tolist())
    classes = dict(zip(rows, toy().train.labels, strict=True))
    for step in range(8):
        ids, labels = dataset[step]
        assert [classes[tuple(row)] for row in ids.tolist()] == labels.tolist()


def test_pairs_are_encoded_together():
    split = TextSplit([("a b", "c")] * 2, [0, 1])
    data = TextData("pairs", ("x", "y"), split, split)
    ((ids, _),) = classification_batches(data, TOKENIZER, 8, 2, training=False)
    np.testing.assert_array_equal(ids[0], TOKENIZER.encode("a b", "c", 8).ids)


def test_small_sets_make_one_batch():
    dataset = classification_batches(toy(), TOKENIZER, 8, 100)
    assert dataset.pass_steps == 1
    assert dataset[0][0].shape == (23, 8)


def test_bad_batches():
    with pytest.raises(ValueError, match="batch_size must be at least 1; received 0"):
        TextBatches(np.ones((2, 3), "int32"), np.ones(2, "int32"), 0)
    with pytest.raises(ValueError, match="no texts for batches"):
        TextBatches(np.ones((0, 3), "int32"), np.ones(0, "int32"), 2)


def test_fit_takes_the_batches_of_all_steps_in_order():
    weights = {}
    for parts in ([(0, 3)], [(0, 1), (1, 3)]):  # without a pause, and with one
        keras.utils.set_random_seed(0)
        inputs = keras.Input((8,), dtype="int32")
        rows = keras.layers.Embedding(128, 2)(inputs)
        model = keras.Model(inputs, keras.layers.GlobalAveragePooling1D()(rows))
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(keras.optimizers.SGD(0.5), loss, metrics=["accuracy"])
        for first, last in parts:
            dataset = batches(seed=1)
            dataset.start = first * dataset.pass_steps
            model.fit(
                dataset,
                steps_per_epoch=dataset.pass_steps,
                initial_epoch=first,
                epochs=last,
                shuffle=False,
                verbose=0,
            )
        weights[len(parts)] = model.get_weights()[0]
        assert model.evaluate(batches(training=False), verbose=0)[1] >= 0
    np.testing.assert_allclose(weights[1], weights[2], atol=1e-6)


def test_batches_of_equal_lengths_hold_the_same_texts():
    generator = np.random.default_rng(0)
    sizes = generator.integers(3, 33, 50)
    ids = np.where(np.arange(32) < sizes[:, None], generator.integers(5, 90, (50, 32)), 0)
    ids, numbers = ids.astype("int32"), np.arange(50)
    dataset = TextBatches(ids, numbers, 6, seed=1, lengths=(8, 16, 40))
    assert (dataset.lengths, dataset.pass_steps) == ([8, 16, 32], 8)
    passes = []
    for first in (0, 8):
        rows = [dataset[first + step] for step in range(8)]
        for tokens, places in rows:
            cut = tokens.shape[1]
            longest = sizes[places].max()
            assert cut == next(n for n in (8, 16, 32) if n >= longest)
            np.testing.assert_array_equal(tokens, ids[places][:, :cut])
        chosen = np.concatenate([places for _, places in rows])
        assert len(set(chosen)) == 48
        passes.append([tuple(places) for _, places in rows])
        widths = [tokens.shape[1] for tokens, _ in rows]
        assert widths != sorted(widths)  # the order of the batches is random
    assert passes[0] != passes[1]
    again = TextBatches(ids, numbers, 6, seed=1, start=8, lengths=(8, 16, 40))
    assert [tuple(again[step][1]) for step in range(8)] == passes[1]
