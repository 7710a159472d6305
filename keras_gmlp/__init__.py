"""The MLP family for images and text, in Keras 3, with attention and convolution baselines."""

from keras_gmlp.utils.import_hooks import call_once_keras_is_imported
from keras_gmlp.utils.lazy_names import attach_names

__version__ = "0.2.0"

# Names load on first use: classifying with a .tflite file never imports Keras.
__getattr__, __dir__, __all__ = attach_names(__spec__)


def _register():
    """Registers layers, initializers, losses, metrics and optimizers with Keras."""
    import keras_gmlp.models.convnet
    import keras_gmlp.objectives.losses
    import keras_gmlp.objectives.metrics
    import keras_gmlp.objectives.optimizers  # noqa: F401
    from keras_gmlp import layers

    for name in layers.__all__:  # they load on first use
        getattr(layers, name)


call_once_keras_is_imported(_register)
