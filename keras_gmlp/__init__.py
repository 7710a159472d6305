"""The MLP family for images and text, in Keras 3, with attention and convolution baselines."""

import lazy_loader

__version__ = "0.1.0"

# Names load on first use (SPEC 1): classifying with a .tflite file never imports Keras.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=[
        "analysis",
        "data",
        "evaluation",
        "export",
        "inference",
        "layers",
        "models",
        "runs",
        "similarity",
        "training",
        "weights",
    ],
    submod_attrs={
        "models.convnet": ["ConvNet"],
        "models.families": [
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
        "models.presets": ["PRESETS"],
        "models.resnet": ["ResNet"],
        "models.structure": ["features"],
        "training.devices": ["use_devices"],
        "training.processes": ["join_processes"],
        "training.recipes": ["RECIPES", "Recipe"],
        "training.saving": ["load_model"],
        "training.train": ["train"],
        "runs.finetuning": ["finetune"],
        "weights.pretrained": ["build"],
    },
)
