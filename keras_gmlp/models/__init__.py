"""Model families, presets, and changes to whole models."""

import lazy_loader

# Names load on first use (SPEC 1): a device with only the LiteRT runtime imports no Keras.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "convnet": ["ConvNet"],
        "image_families": ["EAMLP", "FeedForwardOnly", "MLPMixer", "ResMLP", "ViT", "aMLP", "gMLP"],
        "folding": ["fold"],
        "image_classifier": ["image_classifier"],
        "precision": ["in_float32"],
        "presets": ["PRESETS", "list_presets"],
        "resnet": ["ResNet"],
        "structure": ["features"],
    },
)
