"""Tasks: what a model is trained for, and what it predicts; `task.py` says what one writes."""

from keras_gmlp.utils.lazy_names import attach_names

__getattr__, __dir__, __all__ = attach_names(__spec__)
