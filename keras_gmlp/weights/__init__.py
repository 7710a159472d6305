"""Published weights and weights of other models: files, names, conversion, resizing."""

from keras_gmlp.utils.lazy_names import attach_names

__getattr__, __dir__, __all__ = attach_names(__spec__)
