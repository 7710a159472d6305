"""Samples to batches, on the host and on the device."""

import lazy_loader

# Names load on first use (SPEC 1): a device with the LiteRT runtime alone imports no Keras.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "host": ["arrays", "evaluation_batches", "training_batches"],
        "augmentation": ["Augmentation"],
    },
)
