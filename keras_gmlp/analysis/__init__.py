"""Filters, attention maps and class maps of trained models, as arrays and as pictures."""

from keras_gmlp.utils.lazy_names import attach_names

__getattr__, __dir__, __all__ = attach_names(__spec__)
