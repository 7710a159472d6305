"""The MLP family for images and text, in Keras 3, with attention and convolution baselines."""

import pkgutil

import lazy_loader

from keras_gmlp.utils.import_hooks import call_once_keras_is_imported

__version__ = "0.2.0"

# Names load on first use (SPEC 1): classifying with a .tflite file never imports Keras.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=[module.name for module in pkgutil.iter_modules(__path__)],
    submod_attrs={
        "models.convnet": ["ConvNet"],
        "models.image_families": [
            "EAMLP",
            "FeedForwardOnly",
            "MLPMixer",
            "ResMLP",
            "ViT",
            "aMLP",
            "gMLP",
        ],
        "models.folding": ["fold"],
        "models.image_classifier": ["image_classifier"],
        "models.presets": ["PRESETS", "list_presets"],
        "models.resnet": ["ResNet"],
        "models.structure": ["features"],
        "training.devices": ["use_devices"],
        "training.recipes": ["RECIPES", "Recipe"],
        "models.saved": ["load_model"],
        "training.train": ["train"],
        "runs.finetuning": ["finetune"],
        "runs.settings": ["RunSettings"],
        "weights.loading": ["load"],
        "weights.pretrained": ["build"],
    },
)


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
