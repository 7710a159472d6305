import keras
import numpy as np
import pytest
from check_layer import to_numpy

from keras_gmlp.objectives.losses import CrossEntropy, MaskedCrossEntropy
from keras_gmlp.objectives.metrics import Accuracy

# softmax: (1/2, 1/4, 1/4) and (1/8, 1/8, 3/4)
LOGITS = np.log(np.array([[2.0, 1.0, 1.0], [1.0, 1.0, 6.0]], "float32"))
LABELS = {
    "indices": np.array([1, 2]),
    "column": np.array([[1], [2]]),
    "small integers": np.array([1, 2], "uint8"),
    "rows": np.array([[0, 1, 0], [0, 0, 1]], "float32"),
}
every_label = pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS.keys())


LOG = -np.log(np.array([[2, 1, 1], [1, 1, 6]]) / [[4], [8]])
MIXED = np.array([[0.25, 0.75, 0.0], [0.0, 0.5, 0.5]], "float32")
LOSSES = [
    *((labels, {}, LABELS["rows"]) for labels in LABELS.values()),
    # 0.3 spread over three classes: the right one has 0.8, the others 0.1 each.
    *((labels, {"label_smoothing": 0.3}, 0.1 + 0.7 * LABELS["rows"]) for labels in LABELS.values()),
    (MIXED, {}, MIXED),
    (MIXED, {"class_weights": [2.0, 0.5, 3.0]}, MIXED * [2.0, 0.5, 3.0]),
    (MIXED, {"label_smoothing": 0.3, "class_weights": [1, 1, 1]}, 0.1 + 0.7 * MIXED),
]


@pytest.mark.parametrize(("labels", "options", "shares"), LOSSES)
def test_cross_entropy_by_hand(labels, options, shares):
    expected = (shares * LOG).sum(axis=-1)
    loss = CrossEntropy(reduction=None, name="own", **options)
    restored = keras.losses.deserialize(keras.losses.serialize(loss))
    assert restored.get_config() == loss.get_config()
    for function in (loss, restored):
        np.testing.assert_allclose(to_numpy(function(labels, LOGITS)), expected, rtol=1e-6)
    mean = to_numpy(CrossEntropy(**options)(labels, LOGITS))
    assert mean == pytest.approx(expected.mean(), rel=1e-6)


def test_gradient_of_weighed_classes():
    # One step of plain gradient descent on the logits themselves, the bias of a layer.
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(3)])
    model.layers[0].set_weights([np.zeros((1, 3)), LOGITS[0]])
    model.compile(keras.optimizers.SGD(1.0), loss=CrossEntropy(class_weights=[2.0, 0.5, 3.0]))
    model.fit(np.zeros((1, 1)), np.array([[0.25, 0.75, 0.0]]), verbose=0)
    weighted = np.array([0.5, 0.375, 0.0])
    expected = weighted.sum() * np.array([0.5, 0.25, 0.25]) - weighted
    moved = LOGITS[0] - to_numpy(model.layers[0].bias)
    np.testing.assert_allclose(moved, expected, rtol=1e-5)


def test_as_many_samples_as_classes_are_still_indices():
    logits = np.log(np.array([[2.0, 1.0, 1.0], [1.0, 2.0, 1.0], [1.0, 1.0, 2.0]], "float32"))
    loss = CrossEntropy()(np.array([0, 1, 2]), logits)
    assert to_numpy(loss) == pytest.approx(np.log(2), rel=1e-6)


@every_label
def test_accuracy_by_hand(labels):
    accuracy = Accuracy()
    accuracy.update_state(labels, LOGITS)
    assert to_numpy(accuracy.result()) == 0.5
    accuracy.update_state(labels[1:], LOGITS[1:])
    assert to_numpy(accuracy.result()) == pytest.approx(2 / 3)
    accuracy.reset_state()
    assert to_numpy(accuracy.result()) == 0.0
    accuracy.update_state(np.array([[0.6, 0.4, 0.0], [0.6, 0.0, 0.4]]), LOGITS)  # mixed rows
    assert to_numpy(accuracy.result()) == 0.5


@pytest.mark.parametrize("labels", [[3, 0], [-1, 0], [[1], [3]]])
def test_index_that_is_no_class_gives_nan(labels):
    for function in (CrossEntropy(), Accuracy()):
        assert np.isnan(to_numpy(function(np.array(labels), LOGITS)))


@pytest.mark.parametrize("token", [3, -1])
def test_token_that_is_not_in_the_vocabulary_gives_nan(token):
    ids = np.array([[token, 1]])
    assert np.isnan(to_numpy(MaskedCrossEntropy()(ids, LOGITS[None])))


@pytest.mark.once
def test_callbacks_know_which_metric_is_better(tmp_path):
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(3)])
    model.compile("sgd", loss=CrossEntropy(), metrics=[Accuracy()])
    best = keras.callbacks.ModelCheckpoint(
        tmp_path / "best.keras", monitor="val_accuracy", save_best_only=True
    )
    stop = keras.callbacks.EarlyStopping(monitor="val_accuracy")
    data = LOGITS, LABELS["indices"]
    model.fit(*data, validation_data=data, callbacks=[best, stop], verbose=0)
    assert (tmp_path / "best.keras").exists()
