"""The tasks by their names in recipes and cards; a subclass of `Task` with a name adds itself."""

import importlib

# The tasks of this package, by their names in recipes and cards, which are those of their modules.
IMAGE_TASKS = ("image_classification", "multi_label_classification")
TEXT_TASKS = ("masked_lm", "text_classification", "multi_label_texts")
SHIPPED = IMAGE_TASKS + TEXT_TASKS

_CLASSES = {}


def register(task):
    """Adds a class of tasks under its name."""
    _CLASSES[task.name] = task


def find_task(name=None):
    """Returns the class of a task by its name; recipes without one are for images."""
    name = str(name or "image_classification")  # a card of a stranger may hold anything
    if name in SHIPPED:
        importlib.import_module(f"keras_gmlp.tasks.{name}")
    if name not in _CLASSES:
        known = ", ".join(sorted({*SHIPPED, *_CLASSES}))
        raise ValueError(
            f"unknown task {name[:40]!r}; expected one of {known}. Import the module that defines "
            "a task of your own before."
        )
    return _CLASSES[name]
