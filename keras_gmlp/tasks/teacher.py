"""Distillation: a trained model teaches another one of any family.

The loss of a taught model is `(1 - share) L + share T^2 CE(softmax(t / T), s / T) + weight D`: L is
the loss on the labels, t and s are the logits of teacher and student, T is the temperature, CE the
cross-entropy, and D the mean squared difference between the teacher's normalized features and a
linear map of the student's. Training discards the map.

References: "Distilling the Knowledge in a Neural Network" (https://arxiv.org/abs/1503.02531), and
"Locality Guidance" (https://arxiv.org/abs/2207.10026) for features.
"""

import keras
from keras import ops

from keras_gmlp.models.saved import load_model
from keras_gmlp.models.structure import features


def load_teacher(source, model, logits=True):
    """Loads a teacher as a `keras.Model` from the images of a batch to `[logits, features]`."""
    opened = load_model(source, compile=False)
    teacher = keras.Model(opened.input, [opened.output, features(opened).output])
    given = [("channels", model.input_shape[-1], teacher.input_shape[-1])]
    if logits:
        given.append(("classes", model.output_shape[-1], teacher.output_shape[0][-1]))
    for name, ours, theirs in given:
        if ours != theirs:
            raise ValueError(
                f"teacher {source}: expects {theirs} {name}; the model has {ours}. Choose a "
                "teacher that was trained on the same data."
            )
    teacher.trainable = False  # PyTorch then records no operations for gradients
    return teacher


def run_teacher(teacher, images):
    """Returns a teacher's logits and features for images of any size, without gradients."""
    size = tuple(teacher.input_shape[1:3])
    if tuple(images.shape[1:3]) != size:
        images = ops.image.resize(images, size, antialias=True, data_format="channels_last")
    return [
        ops.stop_gradient(ops.cast(output, "float32")) for output in teacher(images, training=False)
    ]


def logits_loss(teacher, student, temperature=1.0):
    """Computes the loss on a teacher's logits, one number for each sample."""
    student, rows = ops.cast(student, "float32"), ops.softmax(teacher / temperature)
    loss = ops.categorical_crossentropy(rows, student / temperature, from_logits=True)
    return temperature**2 * loss


def features_loss(teacher, student):
    """Computes the mean squared difference of features, one number for each sample."""
    mean, variance = ops.moments(teacher, axes=-1, keepdims=True)
    normalized = (teacher - mean) / ops.sqrt(variance + 1e-6)
    return ops.mean(ops.square(normalized - ops.cast(student, "float32")), axis=-1)


def make_taught_class(task, model):
    """Returns a subclass of `keras.Model` whose loss includes answers of the task's teacher."""
    share, weight = task.teacher_share, task.feature_weight
    teacher = load_teacher(task.teacher, model, logits=share > 0)

    class TaughtModel(keras.Model):
        def __init__(self, inputs, outputs, **kwargs):
            outputs = {"logits": outputs[0]}  # Keras would unpack a list of one
            if weight:
                # Its name begins as the head's, so that the optimizer treats both alike.
                project = keras.layers.Dense(
                    teacher.output_shape[1][-1],
                    kernel_initializer=keras.initializers.GlorotUniform(seed=0),
                    name="head_features",
                    dtype="float32",
                )
                outputs["features"] = project(features(model).output)
            super().__init__(inputs, outputs, **kwargs)

        def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
            logits = y_pred["logits"]
            if not training:
                return super().compute_loss(x, y, logits, sample_weight, training)
            taught, taught_features = run_teacher(teacher, x)
            loss = (1.0 - share) * super().compute_loss(x, y, logits, sample_weight, training)
            if share:
                loss = loss + share * ops.mean(logits_loss(taught, logits, task.temperature))
            if weight:
                loss = loss + weight * ops.mean(features_loss(taught_features, y_pred["features"]))
            return loss

        def compute_metrics(self, x, y, y_pred, sample_weight=None):
            return super().compute_metrics(x, y, y_pred["logits"], sample_weight)

    return TaughtModel
