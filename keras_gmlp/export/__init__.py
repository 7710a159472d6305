"""Exports of a trained model: TFLite, SavedModel and ONNX, each checked.

`utils/formats.py` has the table of formats; the files here write them.
"""

import lazy_loader

# Names load on first use (SPEC 1): a device with only the LiteRT runtime imports no Keras.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "writing": ["FORMATS", "export"],
        "verify": ["export_run"],
    },
)
