"""Image data sets and batches."""

import lazy_loader

# Names load on first use (SPEC 1): a device with the LiteRT runtime alone imports no Keras.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "augmentation": ["Augmentation"],
        "batches": ["arrays", "evaluation_batches", "training_batches"],
        "datasets": ["from_arrays", "load"],
        "image_data": ["ImageData", "take_fraction"],
        "encoded_splits": ["FileSplit"],
        "packed": ["pack"],
        "records": ["RecordSplit"],
        "splits": ["ArraySplit", "DatasetSplit", "Split"],
        "validation": ["hold_out", "make_folds"],
    },
)
