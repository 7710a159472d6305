"""Model families, presets, and changes to whole models; most names are those of `keras_gmlp`."""

import lazy_loader

# Names load on first use (SPEC 1): a device with only the LiteRT runtime imports no Keras.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={"precision": ["in_float32"]},
)
