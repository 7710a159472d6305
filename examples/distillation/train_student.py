#!/usr/bin/env python3
"""Trains a model of keras_gmlp on a teacher's features of pictures, with labels or without.

Each source is a folder of store_features.py and how many times an epoch takes each picture:
`runs/photos=2 runs/tiny=0.33`. The loss is the difference from the teacher's features. One source
may have labels: its classes are those of the model, a linear head for them is fitted to the
teacher's features, and the cross-entropy with labels and the head's answers, in equal parts, is
added. A run that was stopped resumes after its last epoch when the command is repeated.
"""

import argparse
import dataclasses
import json
from pathlib import Path

import keras
import numpy as np
from sources import Pictures, Teacher

import keras_gmlp
from keras_gmlp.models.structure import features
from keras_gmlp.objectives.optimizers import make_optimizer
from keras_gmlp.tasks.teacher import features_loss
from keras_gmlp.utils.card import write_card
from keras_gmlp.weights import transfer


class Batches(keras.utils.PyDataset):
    """Batches of several sources in one order; the epoch is an attribute."""

    def __init__(self, sources, kernel, bias, size, batch_size, seed):
        super().__init__()
        self.sources, self.kernel, self.bias = sources, kernel, bias
        self.size, self.batch_size, self.seed = size, batch_size, seed
        self.set_epoch(0)

    def set_epoch(self, epoch):
        chosen = [
            np.insert(source.choose(epoch), 0, number, axis=1)
            for number, source in enumerate(self.sources)
        ]
        self.rows = np.random.default_rng([self.seed, epoch]).permutation(np.concatenate(chosen))

    def __len__(self):
        return len(self.rows) // self.batch_size

    def __getitem__(self, step):
        rows = self.rows[step * self.batch_size : (step + 1) * self.batch_size]
        images, answers, targets = [], [], []
        for number, source in enumerate(self.sources):
            part = rows[rows[:, 0] == number, 1:]
            if not len(part):
                continue
            views, found = source.read(part, self.size)
            target = softmax(found @ self.kernel + self.bias) / 2
            if source.classes:
                target[np.arange(len(part)), source.labels[part[:, 0]]] += 0.5
            else:
                target[:] = 0  # adds nothing to the cross-entropy
            images.append(views)
            answers.append(found)
            targets.append(target)
        taught = {"logits": np.concatenate(targets), "features": np.concatenate(answers)}
        return np.concatenate(images).astype("float32"), taught


def softmax(logits):
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def fit_teacher_head(source):
    """Fits a linear head to the teacher's features of a labelled source, once; it is stored."""
    path = source.folder / "head.npz"
    if not path.is_file():
        rows = np.stack([np.arange(len(source.labels)), np.zeros(len(source.labels), int)], 1)
        known = source.features[0] if source.features else source.teacher.answer(source, rows)
        known = np.asarray(known, "float32")
        mean, deviation = known.mean(axis=0), known.std(axis=0) + 1e-3
        inputs = keras.Input(known.shape[1:])
        head = keras.Model(inputs, keras.layers.Dense(len(source.classes))(inputs))
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        head.compile(keras.optimizers.AdamW(1e-3, weight_decay=0.1), loss, metrics=["accuracy"])
        head.fit((known - mean) / deviation, source.labels, 512, epochs=3, verbose=2)
        kernel, bias = head.get_weights()
        kernel /= deviation[:, None]
        np.savez(path, kernel=kernel, bias=bias - mean @ kernel)
    with np.load(path) as found:
        return found["kernel"], found["bias"]


def build_student(options):
    """Builds the model, with the weights of another one of any image size as its start."""
    student = keras_gmlp.build(options.model, **json.loads(options.set_model))
    if options.weights:
        start = keras_gmlp.load_model(options.weights, compile=False)
        print(transfer(start, student))
    return student


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sources", nargs="+", metavar="FOLDER=SHARE")
    parser.add_argument("--model", required=True, help="preset, such as gmlp_photo_64")
    parser.add_argument("--set-model", default="{}", metavar="JSON", help="further arguments of it")
    parser.add_argument("--weights", help="a run, an included model or a .keras file to start from")
    parser.add_argument("--teacher", help="ONNX file: views are new each time, nothing is stored")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--learning-rate", type=float, default=0.004)
    parser.add_argument("--feature-weight", type=float, default=6.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", required=True, help="folder for model.keras and checkpoints")
    options = parser.parse_args(arguments)

    teacher = Teacher(options.teacher) if options.teacher else None
    pairs = [source.rsplit("=", 1) for source in options.sources]
    sources = [Pictures(folder, float(share), teacher) for folder, share in pairs]
    heads = [fit_teacher_head(source) for source in sources if source.classes]
    keras.utils.set_random_seed(options.seed)
    student = build_student(options)
    zeros = np.zeros((sources[0].length, student.output_shape[-1]), "float32")
    kernel, bias = heads[0] if heads else (zeros, zeros[0])
    batches = Batches(
        sources, kernel, bias, student.input_shape[1], options.batch_size, options.seed
    )
    project = keras.layers.Dense(len(kernel), name="head_features")
    outputs = {"logits": student.output, "features": project(features(student).output)}
    model = keras.Model(student.input, outputs)
    recipe = dataclasses.replace(
        keras_gmlp.RECIPES["quick"], learning_rate=options.learning_rate, weight_decay=0.05
    )
    model.compile(
        make_optimizer(recipe, options.epochs * len(batches)),
        {
            "logits": keras.losses.CategoricalCrossentropy(from_logits=True),
            "features": features_loss,
        },
        loss_weights={"logits": 1.0, "features": options.feature_weight},
    )
    folder = Path(options.out)
    folder.mkdir(parents=True, exist_ok=True)
    next_epoch = keras.callbacks.LambdaCallback(on_epoch_begin=lambda e, logs: batches.set_epoch(e))
    model.fit(
        batches,
        epochs=options.epochs,
        shuffle=False,  # the rows are shuffled
        callbacks=[
            keras.callbacks.BackupAndRestore(folder / "backup"),
            next_epoch,
            keras.callbacks.CSVLogger(folder / "history.csv", append=True),
            keras.callbacks.SwapEMAWeights(),
        ],
        verbose=1,
    )
    student.save(folder / "model.keras")
    card = {"preset": options.model, "arguments": json.loads(options.set_model)}
    labels = next((source.classes for source in sources if source.classes), None)
    write_card(folder / "model.keras", student, labels, card)


if __name__ == "__main__":
    main()
