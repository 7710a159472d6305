"""What is wrong with a folder of pictures."""

from keras_gmlp.utils.lazy_names import attach_names

__getattr__, __dir__, __all__ = attach_names(__spec__)
