"""Distillation: a trained model teaches another one of any family."""

from keras import ops

from keras_gmlp.losses import as_rows
from keras_gmlp.training.saving import load_model, model_path, require_inputs

TEACHINGS = ("soft", "hard")


def load_teacher(source, model):
    """Loads a teacher.

    Args:
        source: Folder of a run, a `.keras` file, or the name of an included model.
        model: The model to be taught.

    Returns:
        A `keras.Model`.

    Raises:
        ValueError: If there is no such model, or its images or classes differ from the model's.
    """
    path = source if str(source).endswith(".keras") else model_path(source)
    teacher = load_model(path, compile=False)
    require_inputs(teacher, path)
    for name, ours, theirs in (
        ("images of shape", model.input_shape[1:], teacher.input_shape[1:]),
        ("classes", model.output_shape[1:], teacher.output_shape[1:]),
    ):
        if ours != theirs:
            raise ValueError(
                f"teacher {source}: expects {name} {theirs}; the model has {ours}. Choose a "
                "teacher that was trained on the same data at the same size."
            )
    return teacher


def teach(labels, logits, share, teaching):
    """Mixes labels with a teacher's answers.

    Args:
        labels: Class indices `(batch,)` or rows of probabilities `(batch, classes)`.
        logits: The teacher's, `(batch, classes)`.
        share: Weight of the teacher's answers, in [0, 1].
        teaching: `"soft"` for its probabilities, as in "Distilling the Knowledge in a Neural
            Network" (https://arxiv.org/abs/1503.02531) at temperature 1; `"hard"` for its most
            probable class, as in DeiT (https://arxiv.org/abs/2012.12877).

    Returns:
        Rows of probabilities `(batch, classes)`.
    """
    rows = as_rows(labels, logits)
    if teaching == "hard":
        answers = ops.one_hot(ops.argmax(logits, axis=-1), logits.shape[-1], dtype=rows.dtype)
    else:
        answers = ops.softmax(logits)
    return (1.0 - share) * rows + share * answers


def make_taught_class(base, teacher, share, teaching):
    """Returns a subclass of a model class whose training loss includes a teacher's answers.

    The teacher sees the augmented images. It is no part of the model: checkpoints do not hold it.
    """

    class TaughtModel(base):
        def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
            if training:
                logits = ops.cast(teacher(x, training=False), "float32")
                y = teach(y, ops.stop_gradient(logits), share, teaching)
            return super().compute_loss(x, y, y_pred, sample_weight, training)

    return TaughtModel
