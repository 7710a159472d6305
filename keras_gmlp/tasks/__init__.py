"""Tasks: what a model is trained for, and what a saved model of a kind takes and answers."""

import lazy_loader

from keras_gmlp.tasks.registry import SHIPPED

# Names load on first use (SPEC 1): a device with the LiteRT runtime alone imports no Keras.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "task": ["Task"],
        "registry": ["find_task"],
        **{module: [name] for module, name in SHIPPED.values()},
    },
)
