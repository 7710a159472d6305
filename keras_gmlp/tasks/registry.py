"""The tasks by their names in recipes and cards; a subclass of `Task` with a name adds itself."""

import importlib

# The tasks of this package: name, module and class. Their modules load on first use.
IMAGE_TASKS = {
    "image_classification": ("image_classification", "ImageClassification"),
    "multi_label_classification": ("multi_label", "MultiLabelClassification"),
}
TEXT_TASKS = {
    "masked_lm": ("masked_lm", "MaskedLM"),
    "text_classification": ("text_classification", "TextClassification"),
    "question_answering": ("question_answering", "SpanAnswering"),
}
SHIPPED = {**IMAGE_TASKS, **TEXT_TASKS}

_CLASSES = {}


def register(task):
    """Adds a class of tasks under its name."""
    _CLASSES[task.name] = task


def find_task(name=None):
    """Returns the class of a task by its name; recipes and cards without one are for images.

    Args:
        name: Name of a task of this package, or of a subclass of `Task` that was imported. `None`
            for image classification.

    Raises:
        ValueError: If no task has the name. One line.

    """
    name = name or next(iter(SHIPPED))
    if name not in _CLASSES and name in SHIPPED:
        importlib.import_module(f"keras_gmlp.tasks.{SHIPPED[name][0]}")
    if name not in _CLASSES:
        raise ValueError(
            f"unknown task {name!r}; expected one of {', '.join(sorted({*SHIPPED, *_CLASSES}))}. "
            "Import the module that defines a task of your own before."
        )
    return _CLASSES[name]
