import keras
import numpy as np
import pytest
from sklearn.metrics import f1_score, matthews_corrcoef

from keras_gmlp.objectives.metrics import (
    F1,
    Accuracy,
    MatthewsCorrelation,
    MeanAveragePrecision,
    PredictedClasses,
)


def samples(classes, size=211):
    """Returns class indices and logits that agree with about half of them."""
    random = np.random.default_rng(0)
    labels = random.integers(0, classes, size)
    logits = random.normal(size=(size, classes)) + np.eye(classes)[labels]
    return labels, logits.astype("float32")


def references(labels, logits, weights=None):
    """Returns the metrics and what scikit-learn gives for them."""
    found, classes = logits.argmax(-1), logits.shape[-1]
    single, macro = (
        f1_score(labels, found, average=average, sample_weight=weights)
        for average in (None, "macro")
    )
    correlation = matthews_corrcoef(labels, found, sample_weight=weights)
    return [
        (MatthewsCorrelation(classes), correlation),
        (F1(classes), single[1]),
        (F1(classes, positive=0), single[0]),
        (F1(classes, positive=None), macro),
    ]


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_are_those_of_scikit_learn(classes, weighted):
    labels, logits = samples(classes)
    weights = np.random.default_rng(1).uniform(size=len(labels)) if weighted else None
    for metric, expected in references(labels, logits, weights):
        for start in range(0, len(labels), 50):  # the last batch is shorter
            part = slice(start, start + 50)
            metric.update_state(labels[part], logits[part], weights[part] if weighted else None)
        assert float(metric.result()) == pytest.approx(expected, abs=1e-5)


def test_rows_of_probabilities_count_as_their_largest():
    labels, logits = samples(3)
    for metric, expected in references(labels, logits):
        rows = 0.9 * np.eye(3)[labels] + 0.1 / 3
        assert float(metric(rows.astype("float32"), logits)) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("answer", [0, 1])
def test_constant_answers(answer):
    labels, _ = samples(2)
    logits = np.eye(2, dtype="float32")[np.full(len(labels), answer)]
    assert float(MatthewsCorrelation()(labels, logits)) == 0
    assert float(MatthewsCorrelation()(np.full(len(labels), answer), logits)) == 0
    assert float(F1(positive=1 - answer)(labels, logits)) == 0
    assert float(PredictedClasses()(labels, logits)) == 1


def test_rare_class_among_many_samples():
    labels = np.arange(300_000) < 30
    found = np.arange(300_000) % 300_000 < 45
    expected = matthews_corrcoef(labels, found)
    logits = np.eye(2, dtype="float32")[found.astype(int)]
    assert float(MatthewsCorrelation()(labels, logits)) == pytest.approx(expected, rel=1e-3)


def test_evaluate_reports_them():
    labels, logits = samples(3)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Identity()])
    tested = [MatthewsCorrelation(3), F1(3), PredictedClasses(3)]
    model.compile(loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=tested)
    found = model.evaluate(logits, labels, batch_size=50, return_dict=True, verbose=0)
    (_, correlation), (_, f1), *_ = references(labels, logits)
    assert found["matthews_correlation"] == pytest.approx(correlation, abs=1e-5)
    assert found["f1"] == pytest.approx(f1, abs=1e-5)
    assert found["predicted_classes"] == 3


def test_metrics_are_saved():
    labels, logits = samples(3)
    for metric, settings in (
        (Accuracy(name="top_1"), {}),
        (MatthewsCorrelation(3, name="mcc"), {"classes": 3}),
        (F1(3, positive=None), {"classes": 3, "positive": None}),
        (PredictedClasses(3), {"classes": 3}),
        (MeanAveragePrecision(3), {"classes": 3}),
    ):
        assert float(metric.result()) == 0  # no samples
        saved = keras.saving.serialize_keras_object(metric)
        restored = keras.saving.deserialize_keras_object(saved)
        assert type(restored) is type(metric)
        config = {"name": metric.name, "dtype": "float32", **settings}
        assert restored.get_config() == metric.get_config() == config
        labels = np.eye(3)[labels] if isinstance(metric, MeanAveragePrecision) else labels
        assert float(restored(labels, logits)) == float(metric(labels, logits)) > 0


@pytest.mark.parametrize("positive", [-1, 2])
def test_bad_arguments(positive):
    with pytest.raises(ValueError, match="positive must be the index of one of 2 classes"):
        F1(positive=positive)
    with pytest.raises(ValueError, match="classes must be at least 2; received 1"):
        MatthewsCorrelation(1)
