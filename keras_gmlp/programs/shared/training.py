"""The frame of the programs that train: options, checks of the usage, how to resume."""

import argparse
import contextlib
import functools
import json
import sys
from pathlib import Path

from keras_gmlp.programs.shared.cli import Program, import_tensorflow, usage_errors
from keras_gmlp.programs.shared.messages import print_error
from keras_gmlp.programs.shared.processes import (
    PROCESSES,
    join_processes,
    reporting,
    start_processes,
)

TRAINING = f"""\
--devices N|all=1  number of devices, of each process, that split each batch, on the JAX backend;
    --batch-size is the global batch size
--model-parallel M:int=1  number of devices that shard one copy of the model, which saves memory;
    divides --devices
{PROCESSES}\
--checkpoint-minutes M  save a checkpoint within an epoch, too, when the last one is that old, so
    that a killed run loses no more; default: at the end of each epoch only
--restart  delete the run in OUT and start
--tensorboard  log to OUT/tensorboard
--json  print the metrics as JSON, no progress
"""


def make_program(name, description, usage, list_runs, *, introduce, warn, report, **settings):
    """Returns a program that trains the runs of `list_runs(options)`, and reports."""
    # `introduce(run)` prints what is trained on what, `warn(run)` what speaks against the data;
    # `begin(options)` works before the first run.
    check, begin = settings.pop("check", None), settings.pop("begin", None)

    def check_all(options):
        if check:
            check(options)
        options.training = False

    def run(options):
        with usage_errors():
            options.runs = list_runs(options)
        join_processes(options)
        with reporting(options):
            return train_runs(begin, introduce, warn, report, options)

    options = {"devices": {"type": _count_or_all}, "checkpoint_minutes": {"type": _minutes}}
    return Program(name, description, usage, run, check_all, start=start_processes, **options)


def _count_or_all(text):
    if text != "all" and not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a number or all; received {text!r}")
    return text if text == "all" else int(text)


def _minutes(text):
    with contextlib.suppress(ValueError):
        if float(text) > 0:
            return float(text)
    raise argparse.ArgumentTypeError(f"expected a number above 0; received {text!r}")


def train_runs(begin, introduce, warn, report, options):
    """Trains `options.runs` one after another, and reports."""
    import_tensorflow()
    from keras_gmlp.data.run_folder import Run
    from keras_gmlp.runs.run import train_run
    from keras_gmlp.training.devices import is_main, use_devices
    from keras_gmlp.training.precision import choose_precision
    from keras_gmlp.utils.environment import keep_freed_memory

    runs = options.runs
    with usage_errors():
        devices = contextlib.ExitStack()
        devices.enter_context(use_devices(options.devices, options.model_parallel))
        if "precision" not in runs[0].changes:
            precision = choose_precision(None if options.restart else runs[0].out)
            runs = [settings.with_changes(precision=precision) for settings in runs]
    keep_freed_memory()

    def introduce_run(run):
        if not options.json:
            introduce(run)
        new = options.restart or not Run(run.settings.out).complete
        if new and is_main():  # looks for all processes
            warn(run)
        options.training = True

    interactive = not options.json and sys.stdout.isatty()  # shows a progress bar
    shown = {
        "introduce": introduce_run,
        "report": (lambda text: None) if options.json else functools.partial(print, flush=True),
        "verbose": 0 if options.json else 1 if interactive else 2,
    }
    given = {name: getattr(options, name) for name in ("restart", "tensorboard")}
    given |= {"checkpoint_minutes": options.checkpoint_minutes}
    export = not getattr(options, "no_export", True) and options.folds is None
    places, results = [settings.out for settings in runs], []
    directory = places[0] if len(places) == 1 else str(Path(places[0]).parent)
    try:
        with devices:
            if begin:
                begin(options)
            for settings in runs:
                results.append(train_run(settings, export, **shown, **given))
    except KeyboardInterrupt:
        raise KeyboardInterrupt(how_to_resume(options, directory, places)) from None
    return report(options, results, directory)


def how_to_resume(options, place, directories):
    """Returns what stopped runs have kept in their directories, and what resumes them."""
    from keras_gmlp.training.run_directory import has_progress

    if options.restart and not options.training:
        return f"stopped; {place} is unchanged. The same command starts again."
    if not any(map(has_progress, directories)):
        return "stopped; no epoch was finished. The same command starts again."
    command = "The same command" + " without --restart" * options.restart
    return f"stopped; {place} keeps the last checkpoint. {command} resumes the run."


def warn_of_copies(program, unit, found, test, example):
    """Prints that test images, or texts, are for training, too."""
    print_error(
        f"{program}: warning",
        f"{len(found):,} of {len(test):,} test {unit} are training {unit} too ({example}); the "
        "test accuracy will be too high. Remove them from one of the splits.",
    )


def print_result(options, metrics, directory, result, lines):
    """Prints the metrics of a run as JSON, or its result, further lines and its files."""
    if options.json:
        print(json.dumps({"directory": str(directory), **metrics}))
        return
    best = f", epoch {metrics['best_epoch']} is saved" if "best_epoch" in metrics else ""
    seconds = f", {metrics['seconds']:.0f} s" if "seconds" in metrics else ""
    trained = f"after {metrics['epochs']} epochs" if metrics["epochs"] else "with a linear head"
    print(f"{result} {trained}{best}{seconds}")
    exported = f", {directory}/model.tflite" if "tflite" in metrics.get("exports", {}) else ""
    print(*lines, f"model   {directory}/model.keras{exported}", sep="\n")
    if metrics["epochs"]:
        print(f"curves  {directory}/curves.png")
