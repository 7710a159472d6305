"""The MLP family for images, in Keras 3, beside attention and convolution."""

import lazy_loader

__version__ = "0.1.0"

# Names load on first use (SPEC 1): classifying with a .tflite file never imports Keras.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=[
        "augmentation",
        "backends",
        "benchmark",
        "callbacks",
        "cards",
        "charts",
        "checkpoints",
        "comparison",
        "complexity",
        "conversion",
        "data",
        "environment",
        "errors",
        "export",
        "finetuning",
        "images",
        "inference",
        "interpretation",
        "layers",
        "muon",
        "objective",
        "onnx_export",
        "pictures",
        "pretrained",
        "presets",
        "published_names",
        "recipes",
        "resizing",
        "resnet",
        "serving",
        "shell",
        "shipping",
        "sources",
        "status_line",
        "tflite",
        "training",
        "vision",
        "visualization",
    ],
    submod_attrs={
        "presets": ["PRESETS", "build"],
        "inference": ["load_model"],
        "layers": ["fold"],
        "resnet": ["ResNet"],
        "shell": ["image_classifier"],
        "vision": ["EAMLP", "FeedForwardOnly", "MLPMixer", "ResMLP", "ViT", "aMLP", "gMLP"],
    },
)
