"""From a file to an answer; a `.tflite` file requires neither Keras nor TensorFlow."""

import lazy_loader

# Names load on first use (SPEC 1): a device with only the LiteRT runtime imports no Keras.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "similarity": ["embed", "find_similar"],
        "text": ["TextModel"],
    },
)
