import keras
import numpy as np

from keras_gmlp.objectives.metrics import Accuracy, MeanAveragePrecision


def test_metrics_are_saved():
    labels = np.arange(12) % 3
    logits = np.random.default_rng(0).normal(size=(12, 3)).astype("float32")
    for metric, settings in (
        (Accuracy(name="top_1"), {}),
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
