import numpy as np

from keras_gmlp.data.text.sentence_batches import TextBatches

IDS = np.arange(23 * 8, dtype="int32").reshape(23, 8)
CLASSES = np.arange(23, dtype="int32") % 2


def batches(size=5, **options):
    return TextBatches(IDS, CLASSES, size, **options)


def seen(dataset, number):
    """Returns the texts of a pass."""
    steps = range(number * dataset.pass_steps, (number + 1) * dataset.pass_steps)
    return [tuple(row[1:5]) for step in steps for row in dataset[step][0].tolist()]


def test_order_follows_seed_and_pass_only():
    dataset = batches(seed=3)
    assert (dataset.pass_steps, dataset.num_batches) == (4, None)
    assert batches(size=100)[0][0].shape == (23, 8)
    rows, labels = dataset[0]
    assert (rows.dtype, labels.dtype) == ("int32", "int32")
    first, second = seen(dataset, 0), seen(dataset, 1)
    assert len(set(first)) == len(set(second)) == 20  # the last three texts fill no batch
    assert second != first
    assert seen(dataset, 0) == first
    assert seen(batches(seed=4), 0) != first
    assert seen(batches(seed=3, start=4), 0) == second
    classes = dict(zip(map(tuple, IDS.tolist()), CLASSES, strict=True))
    for step in range(8):
        ids, labels = dataset[step]
        assert [classes[tuple(row)] for row in ids.tolist()] == labels.tolist()


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
