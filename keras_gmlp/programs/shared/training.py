"""What a training prints: what is trained on what, what speaks against the data, the results."""

from keras_gmlp.programs.shared import cli
from keras_gmlp.utils.errors import printable, shortened, warn
from keras_gmlp.utils.sources import DEFAULT_BACKBONE

FEW = 200  # test texts
# In the order in which they are printed.
SCORES = ("accuracy", "mean_average_precision", "f1", "matthews_correlation", "perplexity")


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
    import keras

    settings, data = run.settings, run.data
    several = " of which any number may apply" * run.recipe.task.several
    classes = f"{len(getattr(data, 'labels', ()))} classes{several}"
    print(f"model  {settings.model or settings.weights}, {run.model.count_params():,} parameters")
    if run.transfer is not None:
        print(f"from   {settings.weights}: {run.transfer}")
        if settings.weights == DEFAULT_BACKBONE:
            print("       it knows photographs; --weights none trains from scratch")
    if settings.kind == "data":
        sizes = " + ".join(f"{len(split):,} {name}" for name, split in data.splits().items())
        print(f"data   {data.name}, {classes}, {sizes} images")
    elif settings.kind == "task":
        sizes = f"{len(data.train):,} + {len(data.test):,} texts"
        print(f"data   {data.name}, {classes}, {sizes}")
    else:
        print(f"data   {data.name}, {data.train.summary()}")
        print(f"words  {data.tokenizer.size:,}, from {settings.prepared}/tokenizer.json")
    print(f"in     {run.recipe.precision}, on {keras.backend.backend()}")
    print(f"to     {settings.out}")


def warn_of_data(run):
    """Prints what speaks against the data of a run."""
    from keras_gmlp.data.run_folder import record_samples

    task, data = run.recipe.task, run.data
    if task.domain == "images":
        samples = record_samples(data) if data.train.paths else []
        known = {s.hash: s.name for s in samples if s.split == "train" and s.hash}
        if found := [s for s in samples if s.split == "test" and s.hash in known]:
            copy, original = map(printable, (found[0].name, known[found[0].hash]))
            warn_of_copies(found, data.test, "images", f"{copy} is {original}")
        return
    if task.labelled:
        if task.headline == "accuracy" and (samples := len(data.test)) < FEW:
            warn(
                f"number of test texts: {samples:,}, so the accuracy has a standard error of up to "
                f"{50 / samples**0.5:.0f} points. Test on more if you can (--test, --hold-out)."
            )
        known = set(data.train.texts)
        if found := [text for text in data.test.texts if text in known]:
            warn_of_copies(found, data.test, "texts", f"such as {shortened(repr(found[0]), 60)}")
    if line := task.find_unknown(data):
        warn(line)


def warn_of_copies(found, test, unit, example):
    """Prints that test samples are for training, too."""
    warn(
        f"{len(found):,} of {len(test):,} test {unit} are training {unit} too ({example}); the "
        "test accuracy will be too high. Remove them from one of the splits."
    )


def report(options, results, directory):
    """Prints the results of a run, or writes and prints the summary of all folds."""
    from keras_gmlp.runs.folds import write_folds

    folds = options.folds is not None
    found = write_folds(directory, results) if folds else results[0]
    found = {"directory": str(directory), **found}
    cli.show_result(options, found, show_folds if folds else show_run)


def show_run(metrics):
    directory = metrics["directory"]
    own = [name.removeprefix("test_") for name in metrics if name.startswith("test_")]
    names = [name for name in SCORES if name in own] or own  # those of a user's task
    scores = [
        f"{split} {name.replace('_', ' ')} {cli.format_score(name, metrics[f'{split}_{name}'])}"
        for split in ("test", "validation")
        for name in names
        if f"{split}_{name}" in metrics
    ]
    best = f", epoch {metrics['best_epoch']} is saved" if "best_epoch" in metrics else ""
    seconds = f", {metrics['seconds']:.0f} s" if "seconds" in metrics else ""
    epochs = f"{metrics['epochs']} epoch{'s' * (metrics['epochs'] != 1)}"
    trained = f"after {epochs}" if metrics["epochs"] else "with a linear head"
    print(f"{', '.join(scores)} {trained}{best}{seconds}")
    if metrics.get("test_predicted_classes") == 1:
        print("It predicts only one class. Try another --seed or --learning-rate.")
    print(f"model   {directory}/model.keras")
    if export := metrics.get("exports", {}).get("tflite"):
        shown = [
            f"{n.replace('_', ' ')} {cli.format_score(n, export[n])}" for n in names if n in export
        ]
        print(
            f"export  {directory}/model.tflite, {', '.join(shown)}, {export['megabytes']} MB, "
            f"{export['latency_ms']} ms per image on one thread"
        )
    if metrics["epochs"]:
        print(f"curves  {directory}/curves.png")


def show_folds(summary):
    for number, accuracy in enumerate(summary["accuracies"], 1):
        print(f"fold {number:2}  {100 * accuracy:6.2f} %")
    mean, deviation = (100 * summary[f"accuracy_{name}"] for name in ("mean", "deviation"))
    print(f"mean     {mean:6.2f} %, standard deviation {deviation:.2f} %")
    print(f"folds    {summary['directory']}/folds.json")
