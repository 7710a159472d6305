"""Loads image models; a `.tflite` file requires only LiteRT, NumPy and Pillow."""

from keras_gmlp.inference.opening import open_keras, open_model
from keras_gmlp.models.saved import load_model  # noqa: F401 (a name of this package)
from keras_gmlp.tasks.classifier import TEXT, Classifier, make_classifier  # noqa: F401


def load(path, threads=None):
    """Loads a saved model of any format.

    Args:
        path: A `.tflite`, `.keras` or `.onnx` file, the folder of a SavedModel, or the folder of
            a run, in which model.tflite comes before model_features.tflite, model.keras and
            saved_model; or the name of a model that comes with a clone of the repository, such as
            `"gmlp_photo_64"`. Published weights load with `weights.load(source).classifier()`.
        threads: Number of threads of the LiteRT or ONNX runtime. Defaults to the number of cores,
            at most 4.

    Returns:
        A `Classifier`; for a task of your own, what its `wrap` returns.

    Raises:
        ValueError: If the model does not exist, cannot be read, is damaged, or does not take
            images. One line.
        MemoryError: If the model does not fit in memory. One line.

    Example:
        >>> classifier = load("gmlp_n4_32-cifar10")
        >>> classifier.classify("docs/cat.jpg", top=1)[0][0]
        'cat'
    """
    opened = open_model(path, threads)
    task = opened.find_task()
    if task.domain != "images":
        raise ValueError(f"{opened.path}: {task.kind}, not an image model. {TEXT}")
    return task.wrap(opened)


def from_keras(model, path, card):
    """Returns the `Classifier` of a `keras.Model`, with the labels and preparation of a card.

    Args:
        model: A model that returns logits.
        path: Path of its file, for errors.
        card: Dict of its metadata: `labels` and, for example, `fit` and `normalization`.

    Raises:
        ValueError: If the model does not return logits. One line.
    """
    return make_classifier(open_keras(model, path, card))
