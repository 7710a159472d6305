"""How good a model of any format is on labelled images and texts."""

import lazy_loader

# Names load on first use (SPEC 1): a device with only the LiteRT runtime imports no Keras.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "calibration": ["calibrate_run"],
        "scoring": ["evaluate"],
    },
)
