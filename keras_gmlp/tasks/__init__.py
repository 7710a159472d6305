"""Tasks: what a model is trained for, and what it predicts; `task.py` says what one writes."""

import lazy_loader

# The tasks of this package, by their names in recipes and cards, which are those of their modules.
IMAGE_TASKS = {
    "image_classification": ["ImageClassification"],
    "multi_label_classification": ["MultiLabelClassification"],
}
TEXT_TASKS = {
    "masked_lm": ["MaskedLM"],
    "text_classification": ["TextClassification"],
}
SHARED = {
    "classifier": ["Classifier"],
    "task": ["Task"],
    "text_task": ["TextTask"],
}

# Names load on first use (SPEC 1): a device with only the LiteRT runtime imports no Keras.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, submod_attrs={**SHARED, **IMAGE_TASKS, **TEXT_TASKS}
)
