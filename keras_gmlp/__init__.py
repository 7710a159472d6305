"""The MLP family for images, in Keras 3: gMLP, aMLP, and ViT beside them."""

import lazy_loader

__version__ = "0.1.0"

# Names load on first use (SPEC 1): classifying with a .tflite file never imports Keras.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=[
        "augmentation",
        "callbacks",
        "data",
        "environment",
        "errors",
        "export",
        "images",
        "inference",
        "layers",
        "objective",
        "presets",
        "recipes",
        "sources",
        "training",
        "vision",
        "visualization",
    ],
    submod_attrs={
        "presets": ["PRESETS", "build"],
        "vision": ["ViT", "aMLP", "gMLP", "image_classifier"],
    },
)
