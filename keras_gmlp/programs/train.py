"""Trains a model on a data set, shows the progress, and leaves everything in one folder."""

import json

from keras_gmlp.programs.shared.run_options import list_run_options, read_settings
from keras_gmlp.programs.shared.training import (
    TRAINING,
    make_program,
    print_result,
    warn_of_copies,
)
from keras_gmlp.utils.errors import printable

USAGE = f"""\
{list_run_options()}{TRAINING}\
--folds K:int  cross-validation: train K runs, in OUT/fold-1 and so on, each without one K-th of the
    training images, which it tests; reads no test images and exports nothing
--no-export  do not write model.tflite

examples:
  apps/train.py                                        a gMLP on handwritten digits, a minute
  apps/train.py --data cifar10 --recipe standard       CIFAR-10, about three hours on one core
  apps/train.py --data my_photos/                      a folder with one folder for each class,
                                                       from a model that knows photographs
  apps/train.py --data my_photos/ --weights none --image-size 64          the same from scratch
  apps/train.py --recipe long --set mixup=0.2          a recipe with one setting changed
  apps/train.py --data my_photos/ --folds 5            cross-validation: mean and deviation
  apps/train.py --weights gmlp_n4_32-cifar10 --data my_photos/
                                                       start from a trained model
  apps/train.py --backend jax --devices all            all GPUs of the machine
  apps/train.py --backend jax --devices all --coordinator node0:3456 --processes 2 --process 0
                                                       the first of two machines

recipes: quick (12 epochs), standard (36, with MixUp and CutMix), long (300, for a GPU), finetune
(from weights to other classes), resolution (8, from weights to larger images), imagenet (300, the
gMLP paper's), airbench (16, for convnet_8_32). finetune tries a linear head on the features and two
learning rates on images held out, and takes the best; --learning-rate limits it to one, --epochs
switches the choice off, and --epochs 0 fits the head alone, in seconds.
They compute in bfloat16 where that is faster, otherwise in float32: --precision auto measures it.

A run that was stopped or killed resumes when the same command is given again, without --restart.
"""


def list_runs(options):
    """Returns the settings of each run: of the one, or of the run on each fold."""
    from keras_gmlp.runs import fold_settings

    settings = read_settings(options)
    return [settings] if options.folds is None else fold_settings(settings, options.folds)


def warn_of_data(run):
    """Prints a line if test images are for training, too."""
    from keras_gmlp.data.run_folder import record_samples
    from keras_gmlp.inspection.near_duplicates import find_equal_files

    if found := find_equal_files(record_samples(run.data)):
        copy, original = map(printable, next(iter(found.items())))
        warn_of_copies("train", "images", found, run.data.test, f"{copy} is {original}")


def introduce(run):
    """Prints what will be trained on what."""
    from keras_gmlp.utils.shipped import DEFAULT_BACKBONE

    settings, data = run.settings, run.data
    sizes = " + ".join(f"{len(split):,} {name}" for name, split in data.splits().items())
    print(f"model  {settings.model}, {run.model.count_params():,} parameters")
    if run.transfer is not None:
        print(f"from   {settings.weights}: {run.transfer}")
        if settings.weights == DEFAULT_BACKBONE:
            print("       it knows photographs; --weights none trains from scratch")
    print(f"data   {data.name}, {len(data.labels)} classes, {sizes} images")
    print(f"in     {run.recipe.precision}, {advise_backend(run.recipe.precision)}")
    print(f"to     {settings.out}")


def advise_backend(precision):
    """Returns the backend, and on a CPU the names of installed ones that usually are faster."""
    import keras

    from keras_gmlp.utils.environment import accelerators, installed_versions

    backend = keras.backend.backend()
    if accelerators():
        return f"on {backend}"
    # docs/results/speed.md, "Next to timm". In float32 TensorFlow is as fast as PyTorch.
    better = {"jax": ("torch", "tensorflow"), "tensorflow": ("torch",), "torch": ()}[backend]
    if precision == "float32" and backend == "tensorflow":
        better = ()
    packages = {"torch": ("torch",), "tensorflow": ("tensorflow-cpu", "tensorflow")}
    faster = [name for name in better if installed_versions(packages[name])]
    if not faster:
        return f"on {backend}"
    return f"on {backend}; on a CPU --backend {' or '.join(faster)} usually trains faster"


def report(options, results, directory):
    """Prints the results."""
    if options.folds is not None:
        report_folds(options, results, directory)
        return
    metrics = results[0]
    # Images with several labels have no accuracy.
    headline = "accuracy" if "test_accuracy" in metrics else "mean_average_precision"
    score = headline.replace("_", " ")
    result = f"test {score} {100 * metrics[f'test_{headline}']:.2f} %"
    if f"validation_{headline}" in metrics:
        result += f", validation {score} {100 * metrics[f'validation_{headline}']:.2f} %"
    lines = [
        f"{name}: {score} {100 * export[headline]:.2f} %, {export['megabytes']} MB, "
        f"{export['latency_ms']} ms per image on one thread"
        for name, export in metrics.get("exports", {}).items()
        if "latency_ms" in export  # not of all formats
    ]
    print_result(options, metrics, directory, result, lines)


def report_folds(options, results, directory):
    """Writes and prints the summary of all folds."""
    from keras_gmlp.runs import write_folds

    summary = write_folds(directory, results)
    if options.json:
        print(json.dumps({"directory": str(directory), **summary}))
        return
    print("\nfold  accuracy  epochs")
    for number, metrics in enumerate(results, 1):
        print(f"{number:4}  {100 * metrics['test_accuracy']:6.2f} %  {metrics['epochs']:6}")
    mean, deviation = (100 * summary[f"accuracy_{name}"] for name in ("mean", "deviation"))
    print(f"mean  {mean:6.2f} %, standard deviation {deviation:.2f} %")
    print(f"folds   {directory}/folds.json")


main = make_program(
    "train",
    __doc__,
    USAGE,
    list_runs,
    introduce=introduce,
    warn=warn_of_data,
    report=report,
)
