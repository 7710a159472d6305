"""Loads image models; a `.tflite` file requires only LiteRT, NumPy and Pillow."""

from keras_gmlp.inference.opening import open_keras, open_model
from keras_gmlp.models.saved import load_model  # noqa: F401 (a name of this package)
from keras_gmlp.tasks.classifier import TEXT, Classifier, make_classifier  # noqa: F401


def load(path, threads=None):
    """Loads an image model, as `keras_gmlp.load` does; published weights require Keras, see there.

    In the folder of a run model.tflite comes before model_features.tflite, model.keras and
    saved_model.

    Args:
        path, threads: As for `keras_gmlp.load`.

    Returns:
        A `Classifier`.

    Raises:
        ValueError: As `keras_gmlp.load`, or if the model does not take images. One line.

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
