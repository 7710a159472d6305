#!/usr/bin/env python3
"""Trains many models under one recipe and compares them: a table and charts."""

import argparse
import dataclasses
import json
import os
import shlex
import sys
from pathlib import Path

import train
from cli import add_backend, add_data_dir, guarded, import_tensorflow

EPILOG = """\
examples:
  apps/compare.py gmlp_n4_32 amlp_n4_32 vit_n4_32 --epochs 3          on handwritten digits
  apps/compare.py gmlp_n4_32 vit_n4_32 --data cifar10 --seeds 0 1 2   three seeds of each
  apps/compare.py gmlp_n4_32 --data cifar10 --fractions 0.1 0.25 0.5 1
  apps/compare.py gmlp_n4_32 mixer_n4_32 --jobs 2   two at once, half the cores each
  apps/compare.py gmlp_n4_32 --data cifar10 -- --set mixup=0.2        what follows goes to train.py
  apps/compare.py gmlp_n4_32 vit_n4_32 --seeds 0 1 2 --no-train       of these, what is there

Writes OUT/results.csv (one row a run), OUT/results.md and charts; runs that apps/export.py has
exported get a table of what that cost. To stay in the table a run needs its recipe.json,
metrics.json and history.csv, not its model. A sweep that was stopped or killed goes on when the
same command is given again; a run that fails is a row that says so.
exit codes: 0 all runs complete, 1 some failed or are not done, 2 wrong usage, 130 stopped with
Ctrl-C
"""
TRAIN = Path(train.__file__)


def parse(arguments):
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    own, passed = arguments, []
    if "--" in arguments:
        own, passed = arguments[: arguments.index("--")], arguments[arguments.index("--") + 1 :]
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("presets", nargs="+", metavar="PRESET", help="as --model of train.py")
    parser.add_argument("--data", default="digits", metavar="NAME|FOLDER", help="as of train.py")
    add_data_dir(parser)
    parser.add_argument("--recipe", default="quick", help="of all runs; default: %(default)s")
    parser.add_argument("--epochs", type=int, help="default: the recipe's")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="default: 0")
    parser.add_argument(
        "--fractions",
        type=float,
        nargs="+",
        default=[1.0],
        help="of the training images; default: 1",
    )
    add_backend(parser)
    parser.add_argument("--out", metavar="DIR", help="default: runs/compare-DATA")
    parser.add_argument("--runs", metavar="DIR", help="where the runs lie; default: OUT/runs")
    parser.add_argument(
        "--jobs", type=int, default=1, help="runs at once, which share the cores; default: 1"
    )
    parser.add_argument("--retry", action="store_true", help="try runs again that failed before")
    parser.add_argument("--json", action="store_true", help="print the table's rows as JSON")
    parser.add_argument(
        "--no-train", action="store_true", help="table and charts of those runs that are there"
    )
    options = parser.parse_args(own)
    options.passed = passed
    options.command = " ".join(["apps/compare.py", *map(shlex.quote, arguments)])
    options.out = Path(options.out or f"runs/compare-{Path(options.data).name}")
    options.runs = Path(options.runs or options.out / "runs")
    return parser, options


def main(arguments=None):
    parser, options = parse(arguments)
    return guarded("compare", lambda: compare(parser, options))


def compare(parser, options):
    """Checks, trains, reports; the exit code."""
    import_tensorflow()
    try:
        check(options)
    except ValueError as error:
        parser.error(str(error))
    from keras_gmlp.comparison.results import plan_runs
    from keras_gmlp.comparison.sweep import Sweep
    from keras_gmlp.utils.files import directory_lock

    runs = plan_runs(options.presets, options.seeds, options.fractions, options.runs)
    refuse_other_settings(options, runs)
    try:
        if options.no_train:
            runs = [run for run in runs if run.begun or run.failed]
            if not runs:
                raise ValueError(f"{options.runs} has none of these runs; leave out --no-train")
        else:
            with directory_lock(
                options.runs
            ):  # a second sweep would train the same runs over one another
                if options.retry:
                    for run in runs:
                        run.forget_failure()
                commands = {run: command_of(options, run) for run in runs}
                Sweep(commands, options.epochs, options.jobs).work()
        return report(options, runs)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("stopped; the same command goes on.") from None


def check(options):
    """Raises a ValueError for wrong usage, before anything is trained."""
    from keras_gmlp.models.presets import lookup
    from keras_gmlp.training.recipes import RECIPES

    for preset in options.presets:
        lookup(preset)
    if options.recipe not in RECIPES:
        raise ValueError(f"Unknown recipe {options.recipe!r}. There are: {', '.join(RECIPES)}.")
    if not all(0 < fraction <= 1 for fraction in options.fractions):
        raise ValueError(f"--fractions must be in (0, 1]; received {options.fractions}")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    if not 1 <= options.jobs <= cores:
        raise ValueError(f"--jobs must be from 1 to the {cores} cores; received {options.jobs}")
    own = ("--seed", "--epochs", "--model", "--out", "--fraction", "--data", "--recipe")
    for word in options.passed:
        if word.split("=")[0] in own:
            raise ValueError(f"give what {word} says before --, as an argument of compare.py")
    if options.epochs is not None and options.epochs < 1:
        raise ValueError(f"--epochs must be at least 1; received {options.epochs}")
    options.epochs = options.epochs or RECIPES[options.recipe].epochs
    for name in ("presets", "seeds", "fractions"):
        values = getattr(options, name)
        setattr(options, name, list(dict.fromkeys(values)))  # each once
    options.recipes = {seed: recipe_of(options, seed) for seed in options.seeds}


def train_arguments(options, seed):
    """What train.py is given for every run of a seed; its own arguments first, ours win."""
    backend = ["--backend", options.backend] if options.backend else []
    place = ["--data-dir", options.data_dir] if options.data_dir else []
    return [
        *options.passed,
        *("--data", options.data, "--recipe", options.recipe, "--epochs", str(options.epochs)),
        *("--seed", str(seed), *backend, *place),
    ]


def command_of(options, run):
    """What trains a run; it ends when this process does."""
    return [
        *(sys.executable, str(TRAIN), *train_arguments(options, run.seed)),
        *("--model", run.preset, "--fraction", str(run.fraction), "--out", str(run.directory)),
        *("--json", "--no-export", "--stop-with-parent"),
    ]


def recipe_of(options, seed):
    """The recipe that train.py makes of the arguments, and its options; it refuses wrong ones."""
    try:
        its_options = train.parse(train_arguments(options, seed))[1]
        recipe = train.make_recipe(its_options)
    except TypeError as error:
        raise ValueError(error) from None
    if (recipe.seed, recipe.epochs) != (seed, options.epochs):
        raise ValueError("give seeds and epochs as --seeds and --epochs, before --")
    return recipe, its_options


def refuse_other_settings(options, runs):
    """Raises a ValueError where a run was begun with other settings than those asked for."""
    for run in runs:
        differing = run.differences(settings_of(options, run)) if run.begun else []
        if differing:
            raise ValueError(
                f"{run.directory} holds a run with other settings ({'; '.join(differing)}). Give "
                "the same, or choose another --out."
            )


def settings_of(options, run):
    """What a run's recipe.json will say."""
    import keras

    from keras_gmlp.data.datasets import canonical_name
    from keras_gmlp.models.presets import lookup
    from keras_gmlp.training.recipes import PATCH_OPTIONS

    recipe, its_options = options.recipes[run.seed]
    settings = json.loads(json.dumps(dataclasses.asdict(recipe)))
    settings |= {
        "preset": run.preset,
        "data": canonical_name(options.data),
        "fraction": run.fraction,
    }
    settings |= {name: getattr(its_options, name) for name in ("weights", *PATCH_OPTIONS)}
    settings["backend"] = its_options.backend or keras.backend.backend()
    if its_options.image_size:
        settings["image_size"] = [its_options.image_size] * 2
    elif not its_options.weights:
        settings["image_size"] = list(lookup(run.preset)[1]["input_shape"][:2])
    return settings


def report(options, runs):
    """Writes table and charts; the exit code."""
    from keras_gmlp.comparison import charts, costs, results
    from keras_gmlp.utils.environment import processor
    from keras_gmlp.utils.errors import first_of
    from keras_gmlp.utils.files import atomic_write

    def warn(text):
        print(f"compare: {text}", file=sys.stderr, flush=True)

    complete = [run for run in runs if run.complete]
    missed = results.find_left_out(options.out / "results.csv", [run.row() for run in runs])
    if missed:
        warn(
            f"the table held {first_of(missed, 3)} too; ask for all at once to have them in it "
            "again"
        )
    results.write_results(runs, options.out / "results.csv")  # first, whatever fails below
    of_presets = costs.measure_costs(complete, warn)
    rows = results.write_results(runs, options.out / "results.csv", of_presets)
    with atomic_write(options.out / "results.md") as temporary:
        text = results.to_markdown(rows, options.command, processor())
        temporary.write_text(text + results.exports_to_markdown(complete))
    written = [options.out / "results.md", options.out / "results.csv"]
    if complete:
        written += charts.draw_comparison(complete, rows, options.out)
    if options.json:
        print(json.dumps(rows))
    else:
        print(*written, sep="\n")
    failed = [row for row in rows if row["status"].startswith("failed")]
    for row in failed:
        warn(f"{row['preset']} seed {row['seed']}: {row['status']}")
    if failed:
        warn("--retry tries them again")
    if len(complete) + len(failed) < len(runs):
        warn(f"{len(runs) - len(complete) - len(failed)} of {len(runs)} runs are not done")
    return 0 if len(complete) == len(runs) else 1


if __name__ == "__main__":
    sys.exit(main())
