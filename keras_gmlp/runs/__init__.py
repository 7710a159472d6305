"""Runs: from a preset, weights, a recipe and data to a trained, exported model."""

from keras_gmlp.utils.lazy_names import attach_names

__getattr__, __dir__, __all__ = attach_names(__spec__)
