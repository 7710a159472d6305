"""Published weights and weights of other models: files, names, conversion, resizing."""

import lazy_loader

# Names load on first use (SPEC 1): a device with only the LiteRT runtime imports no Keras.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={"resampling": ["transfer"]},
)
