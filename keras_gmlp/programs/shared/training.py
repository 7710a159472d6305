"""What a training prints: what is trained on what, what speaks against the data, the results."""

import json

from keras_gmlp.programs.shared.messages import print_error
from keras_gmlp.utils.errors import printable, shortened

FEW = 200  # test texts
# In the order in which they are printed, and whether in percent.
SCORES = {"accuracy": True, "mean_average_precision": True, "f1": True}
SCORES |= {"matthews_correlation": False, "perplexity": False}


def introduce(options, run):
    """Prints what will be trained on what, and what speaks against the data of a new run."""
    from keras_gmlp.data.run_folder import Run
    from keras_gmlp.training.devices import is_main

    if not options.json:
        print_run(run)
    new = options.restart or not Run(run.settings.out).complete
    if new and is_main():  # looks for all processes
        warn_of_data(run)


def print_run(run):
    """Prints what will be trained on what."""
    from keras_gmlp.utils.sources import DEFAULT_BACKBONE

    settings, data = run.settings, run.data
    print(f"model  {settings.model or settings.weights}, {run.model.count_params():,} parameters")
    if run.transfer is not None:
        print(f"from   {settings.weights}: {run.transfer}")
        if settings.weights == DEFAULT_BACKBONE:
            print("       it knows photographs; --weights none trains from scratch")
    if settings.kind == "data":
        sizes = " + ".join(f"{len(split):,} {name}" for name, split in data.splits().items())
        print(f"data   {data.name}, {len(data.labels)} classes, {sizes} images")
    elif settings.kind == "task":
        sizes = f"{len(data.train):,} + {len(data.test):,} texts in {len(data.labels)} classes"
        print(f"data   {data.name}, {sizes}")
    else:
        print(f"data   {data.name}, {data.train.summary()}")
        print(f"words  {data.tokenizer.size:,}, from {settings.prepared}/tokenizer.json")
    print(f"in     {run.recipe.precision}, {name_backend(run.recipe.precision)}")
    print(f"to     {settings.out}")


def name_backend(precision):
    """Returns the backend, and on a CPU the name of an installed one that usually is faster."""
    import keras

    from keras_gmlp.utils.environment import accelerators, is_installed

    backend = keras.backend.backend()
    # docs/results/speed.md, "Next to timm". In float32 TensorFlow is as fast as PyTorch.
    slower = backend == "jax" or (backend == "tensorflow" and precision != "float32")
    if accelerators() or not slower or not is_installed("torch"):
        return f"on {backend}"
    return f"on {backend}; on a CPU --backend torch usually trains faster"


def warn_of_data(run):
    """Prints what speaks against the data of a run."""
    from keras_gmlp.data.run_folder import record_samples
    from keras_gmlp.inspection.near_duplicates import find_equal_files, find_equal_texts

    task, data = run.recipe.task, run.data
    if task.domain == "images":
        if data.train.paths and (found := find_equal_files(record_samples(data))):
            copy, original = map(printable, next(iter(found.items())))
            warn_of_copies(found, data.test, "images", f"{copy} is {original}")
        return
    if task.headline == "accuracy":
        if (samples := len(data.test)) < FEW:
            warn(
                f"number of test texts: {samples:,}, so the accuracy has a standard error of up to "
                f"{50 / samples**0.5:.0f} points. Test on more if you can (--test, --hold-out)."
            )
        if found := find_equal_texts(data):
            warn_of_copies(found, data.test, "texts", f"such as {shortened(repr(found[0]), 60)}")
    if line := task.find_unknown(data):
        warn(line)


def warn_of_copies(found, test, unit, example):
    """Prints that test samples are for training, too."""
    warn(
        f"{len(found):,} of {len(test):,} test {unit} are training {unit} too ({example}); the "
        "test accuracy will be too high. Remove them from one of the splits."
    )


def warn(text):
    print_error("train: warning", text)


def report(options, results, directory):
    """Prints the results."""
    if options.folds is not None:
        report_folds(options, results, directory)
        return
    metrics = results[0]
    if options.json:
        print(json.dumps({"directory": str(directory), **metrics}))
        return
    own = [name.removeprefix("test_") for name in metrics if name.startswith("test_")]
    names = [name for name in SCORES if name in own] or own  # those of a user's task
    scores = [
        f"{split} {name.replace('_', ' ')} {show_score(name, metrics[f'{split}_{name}'])}"
        for split in ("test", "validation")
        for name in names
        if f"{split}_{name}" in metrics
    ]
    best = f", epoch {metrics['best_epoch']} is saved" if "best_epoch" in metrics else ""
    seconds = f", {metrics['seconds']:.0f} s" if "seconds" in metrics else ""
    trained = f"after {metrics['epochs']} epochs" if metrics["epochs"] else "with a linear head"
    print(f"{', '.join(scores)} {trained}{best}{seconds}")
    if metrics.get("test_predicted_classes") == 1:
        print("It predicts only one class. Try another --seed or --learning-rate.")
    print(f"model   {directory}/model.keras")
    if export := metrics.get("exports", {}).get("tflite"):
        score = next(name for name in SCORES if name in export)
        print(
            f"export  {directory}/model.tflite, {score.replace('_', ' ')} "
            f"{show_score(score, export[score])}, {export['megabytes']} MB, "
            f"{export['latency_ms']} ms per image on one thread"
        )
    if metrics["epochs"]:
        print(f"curves  {directory}/curves.png")


def show_score(name, value):
    return f"{100 * value:.2f} %" if SCORES.get(name) else f"{value:.4g}"


def report_folds(options, results, directory):
    """Writes and prints the summary of all folds."""
    from keras_gmlp.runs.folds import write_folds

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
