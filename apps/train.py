#!/usr/bin/env python3
"""Trains a model on a data set, shows how it goes, and leaves everything in one folder."""

import argparse
import contextlib
import dataclasses
import json
import os
import sys
import threading
from pathlib import Path

from cli import add_backend, add_data_dir, choose_backend, guarded, import_tensorflow

EPILOG = """\
examples:
  apps/train.py                                        a gMLP on handwritten digits, a minute
  apps/train.py --data cifar10 --recipe standard       CIFAR-10, about three hours on one core
  apps/train.py --data my_photos/ --image-size 64      a folder with one folder for each class
  apps/train.py --recipe long --set mixup=0.2          a recipe with one setting changed
  apps/train.py --weights saved_models/gmlp_n4_32-cifar10 --data my_photos/
                                                       begin with a trained model

recipes: quick (12 epochs), standard (36, with MixUp and CutMix), long (300, for a GPU), finetune
(12, from weights), resolution (8, from weights to larger images), imagenet (300, the gMLP paper's).
All but --precision float32 compute in bfloat16, which is slow on a CPU without AMX or AVX512-BF16.

A run that was stopped or killed goes on when the same command is given again, without --restart.
exit codes: 0 done, 1 failure, 2 wrong usage, 130 stopped with Ctrl-C
"""


def parse(arguments):
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--model",
        metavar="PRESET",
        help="gmlp, amlp, vit, deit, mixer, resmlp, eamlp or ff_only with _n4_32, small enough for "
        "a CPU, resnet_56_32, or another of keras_gmlp.PRESETS; default: gmlp_n4_32, or what the "
        "weights are of",
    )
    parser.add_argument(
        "--weights",
        metavar="SOURCE",
        help="to begin with: a run's folder, a .keras file, a file of published weights, or "
        "hf-hub:NAME; resized to the images, with a fresh head where the classes are others",
    )
    parser.add_argument("--freeze", action="store_true", help="train the head alone")
    parser.add_argument(
        "--data",
        default="digits",
        metavar="NAME|FOLDER",
        help="digits (bundled), a TensorFlow Datasets name, or a folder; default: %(default)s",
    )
    add_data_dir(parser)
    parser.add_argument("--out", metavar="DIR", help="default: runs/PRESET-DATA")
    parser.add_argument(
        "--recipe",
        help="quick, standard, long, finetune, resolution, imagenet; default: quick, or finetune "
        "with weights; resolution takes weights to larger images of the same classes",
    )
    parser.add_argument(
        "--epochs", type=int, help="default, of this and the next four: the recipe's"
    )
    parser.add_argument("--batch-size", type=int, help="images")
    parser.add_argument("--learning-rate", type=float, help="the highest, after the warm-up")
    parser.add_argument("--seed", type=int, help="of weights, order and augmentation")
    parser.add_argument(
        "--precision",
        choices=["float32", "mixed_bfloat16", "mixed_float16"],
        help="to compute in; weights are kept in float32",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        dest="settings",
        help="any other setting of the recipe: weight_decay=0.05, optimizer=adamw, flip=0 (for "
        "letters and signs), mixup=0.3, cutmix=0.3, rand_augment=0.4, cutout=0.4, ema=0.05, "
        "stochastic_depth=0.1, layer_decay=0.75, ...",
    )
    parser.add_argument("--image-size", type=int, metavar="PIXELS", help="default: the model's")
    parser.add_argument(
        "--patch-size",
        type=int,
        metavar="PIXELS",
        help="default: the model's; 6 in place of 4 leaves a model for 32 pixels as many tokens at "
        "48",
    )
    parser.add_argument(
        "--patch-window",
        type=int,
        metavar="PIXELS",
        help="that a token is made from, for larger images than the weights': 6 where patches of 4 "
        "meet images of 48 in place of 32",
    )
    parser.add_argument(
        "--fraction", type=float, default=1.0, help="of the training images; default: all, 1.0"
    )
    add_backend(parser)
    # For a program that starts this one: when it is killed, its end of the pipe closes.
    parser.add_argument("--stop-with-parent", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--restart", action="store_true", help="train anew over what is in OUT")
    parser.add_argument("--no-export", action="store_true", help="leave out model.tflite")
    parser.add_argument("--tensorboard", action="store_true", help="log to OUT/tensorboard")
    parser.add_argument(
        "--json", action="store_true", help="print the metrics as JSON, no progress"
    )
    options = parser.parse_args(arguments)
    if options.weights == "":  # an unset variable of a shell
        parser.error("--weights is empty; expected a run's folder, a file or hf-hub:NAME")
    if options.weights:
        options.weights = options.weights.rstrip("/")
    if options.recipe is None:
        options.recipe = "finetune" if options.weights else "quick"
    if options.model is None and not options.weights:
        options.model = "gmlp_n4_32"
    options.training = False
    choose_backend(options)
    return parser, options


def make_recipe(options):
    """The named recipe with the command line's settings in their places."""
    from keras_gmlp.training.recipes import RECIPES, Recipe

    if options.recipe not in RECIPES:
        raise ValueError(f"Unknown recipe {options.recipe!r}. There are: {', '.join(RECIPES)}.")
    recipe = RECIPES[options.recipe]
    changes = {
        name: getattr(options, name)
        for name in ("epochs", "batch_size", "learning_rate", "seed", "precision")
        if getattr(options, name) is not None
    }
    if options.freeze:
        changes["freeze"] = True
    augmentation = {}
    of_recipe = {field.name for field in dataclasses.fields(Recipe)} - {"augmentation"}
    of_augmentation = {field.name for field in dataclasses.fields(recipe.augmentation)}
    for setting in options.settings:
        name, _, text = setting.partition("=")
        value = text
        with contextlib.suppress(ValueError):
            value = json.loads(text)
        if name not in ("optimizer", "precision") and not isinstance(value, int | float):
            raise ValueError(f"--set {setting}: expected {name}=NUMBER.")
        if name in of_augmentation:
            augmentation[name] = value
        elif name in of_recipe:
            changes[name] = value
        else:
            known = ", ".join(sorted(of_recipe | of_augmentation))
            raise ValueError(f"--set {setting}: no such setting; there are: {known}.")
    changes["augmentation"] = dataclasses.replace(recipe.augmentation, **augmentation)
    recipe = dataclasses.replace(recipe, **changes)
    if recipe.freeze and not options.weights:
        raise ValueError("freeze trains the head on a trained backbone: give --weights")
    return recipe


def main(arguments=None):
    parser, options = parse(arguments)
    return guarded("train", lambda: run(parser, options))


def run(parser, options):
    """Checks the usage, trains, reports; the exit code."""
    import_tensorflow()
    from keras_gmlp.models.presets import lookup
    from keras_gmlp.weights.files import short_name

    try:
        recipe = make_recipe(options)
        if options.model:
            lookup(options.model)
    except (ValueError, TypeError) as error:
        parser.error(str(error))
    for name in ("image_size", "patch_size"):
        pixels = getattr(options, name)
        if pixels is not None and pixels < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1; received {pixels}")
    if not 0 < options.fraction <= 1:
        parser.error(f"--fraction must be in (0, 1]; received {options.fraction}")
    if options.stop_with_parent:
        threading.Thread(target=stop_with_parent, daemon=True).start()
    begin = short_name(options.weights) if options.weights else options.model
    out = options.out or f"runs/{begin}-{Path(options.data).name}"
    place = Path(out).resolve()
    if options.weights and Path(options.weights).resolve() in (place, place / "model.keras"):
        parser.error(f"--out {out} is where the weights are; give another folder")
    try:
        metrics = train(options, recipe, out)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(how_to_go_on(options, out)) from None
    report(options, metrics, out)
    return 0


def how_to_go_on(options, out):
    """What a stopped run has left, and what continues it."""
    from keras_gmlp.training.run_directory import has_progress

    if options.restart and not options.training:
        return f"stopped; {out} is as it was. The same command begins again."
    if not has_progress(out):
        return "stopped; no epoch was finished. The same command begins again."
    again = "The same command without --restart" if options.restart else "The same command"
    return f"stopped; {out} keeps the finished epochs. {again} goes on."


def stop_with_parent():
    while os.read(0, 1):  # not sys.stdin, whose lock a thread would hold at the program's end
        pass
    os._exit(130)


def train(options, recipe, out):
    """Trains and exports; the metrics."""
    import keras

    from keras_gmlp import data
    from keras_gmlp.data.datasets import check_path
    from keras_gmlp.export.verify import export_run
    from keras_gmlp.models import presets
    from keras_gmlp.training import run_directory, train
    from keras_gmlp.training.recipes import PATCH_OPTIONS
    from keras_gmlp.utils.files import directory_lock, write_json
    from keras_gmlp.weights import pretrained

    check_path(options.data)  # before weights are downloaded
    place = Path(out).resolve()
    new = [folder for folder in (place, *place.parents) if not folder.exists()]
    with directory_lock(out, run_directory.LOCK_TIMEOUT):  # before minutes go into data and model
        pass
    with contextlib.suppress(OSError):  # another run may have begun in one
        for folder in new:  # or a mistake in what follows would leave empty ones
            folder.rmdir()
    source = pretrained.load(options.weights, options.model) if options.weights else None
    preset = source.preset if source else options.model
    shape = source.model.input_shape[1:] if source else presets.lookup(preset)[1]["input_shape"]
    size = (options.image_size, options.image_size) if options.image_size else shape[:2]
    dataset = data.load(options.data, size, options.data_dir, shape[2] if source else None)
    if options.fraction < 1:
        dataset = data.take_fraction(dataset, options.fraction)
    keras.utils.set_random_seed(recipe.seed)
    arguments = {"input_shape": dataset.image_shape, **recipe.model_arguments()}
    for name in PATCH_OPTIONS:
        if getattr(options, name) is not None:
            arguments[name] = getattr(options, name)
    if source:
        model, transfer = source.adapt(dataset.labels, **arguments)
    else:
        model, transfer = pretrained.build(preset, classes=len(dataset.labels), **arguments), None
    complete = (Path(out) / "metrics.json").exists() and not options.restart
    if not options.json:
        introduce(preset, model, dataset, out, f"{options.weights}: {transfer}" if source else "")
    seen = not options.json and sys.stdout.isatty()  # a progress bar would be
    before = None
    if source and not complete and not transfer.fresh:
        if not options.json:
            print("before training: testing the weights as they are ...", flush=True)
        before = train.evaluate(model, dataset, verbose=int(seen))[1]
        if not options.json:
            print(f"before {100 * before:.2f} % of the test images right")
    names = {"preset": preset, "recipe": options.recipe, "fraction": options.fraction}
    names |= {name: getattr(options, name) for name in ("weights", *PATCH_OPTIONS)}
    options.training = True
    metrics = train.train(
        model,
        dataset,
        recipe,
        out,
        restart=options.restart,
        tensorboard=options.tensorboard,
        verbose=0 if options.json else 1 if seen else 2,
        extra=names,
    )
    if complete and not options.json:
        print("this run is complete already; --restart trains it anew.")
    if before is not None:
        metrics["accuracy_before"] = before
        write_json(Path(out) / "metrics.json", metrics)
    if not options.no_export and "tflite" not in metrics.get("exports", {}):
        metrics["exports"] = export_run(out, ["tflite"], dataset)
    return metrics


def introduce(preset, model, dataset, out, weights):
    """Says what is about to be trained on what."""
    train, test = int(dataset.train.cardinality()), int(dataset.test.cardinality())
    print(f"model  {preset}, {model.count_params():,} parameters")
    if weights:
        print(f"from   {weights}")
    print(f"data   {dataset.name}, {len(dataset.labels)} classes, {train:,} + {test:,} images")
    print(f"to     {out}")


def report(options, metrics, out):
    if options.json:
        print(json.dumps({"directory": str(out), **metrics}))
        return
    print(
        f"test accuracy {100 * metrics['test_accuracy']:.2f} % after {metrics['epochs']} epochs, "
        f"{metrics['seconds']:.0f} s"
    )
    for name, found in metrics.get("exports", {}).items():
        if name != "keras":
            print(
                f"{name}: accuracy {100 * found['accuracy']:.2f} %, {found['megabytes']} MB, "
                f"{found['latency_ms']} ms an image on one thread"
            )
    exported = f", {out}/model.tflite" if "tflite" in metrics.get("exports", {}) else ""
    print(f"model   {out}/model.keras{exported}")
    print(f"curves  {out}/curves.png")


if __name__ == "__main__":
    sys.exit(main())
