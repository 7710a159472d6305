"""Image data sets and batches."""

import lazy_loader

# Names load on first use (SPEC 1): a device with only the LiteRT runtime imports no Keras.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "batches.augmentation": ["Augmentation"],
        "batches.host": ["evaluation_batches", "training_batches"],
        "datasets": ["load"],
        "images.image_data": ["ImageData"],
        "images.packed": ["pack"],
        "images.samples": ["Samples"],
        "own_arrays": ["from_arrays"],
        "validation": ["hold_out"],
    },
)
