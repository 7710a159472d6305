"""What is wrong with a folder of pictures."""

import lazy_loader

# Names load on first use (SPEC 1): a device with only the LiteRT runtime imports no Keras.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "check": ["check_folder"],
        "label_errors": ["find_label_errors"],
        "near_duplicates": ["find_near_duplicates"],
    },
)
