"""How good a model of any format is on labelled images and texts."""

from keras_gmlp.utils.lazy_names import attach_names

__getattr__, __dir__, __all__ = attach_names(__spec__)
