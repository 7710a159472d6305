"""Exports of a trained model: TFLite, SavedModel and ONNX, each checked.

`utils/formats.py` has the table of formats; the files here write them.
"""

from keras_gmlp.utils.lazy_names import attach_names

__getattr__, __dir__, __all__ = attach_names(__spec__)
