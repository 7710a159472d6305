"""Trains many models under one recipe and compares them: a table and charts."""

import csv
import shlex
from pathlib import Path

from keras_gmlp.programs.shared import cli
from keras_gmlp.programs.shared.messages import print_error
from keras_gmlp.programs.shared.parser import Parser
from keras_gmlp.programs.shared.run_options import (
    RECIPE_OF_A_SWEEP,
    list_run_options,
    read_settings,
)

USAGE = """\
presets PRESET+  as --model of train.py
--data NAME|FOLDER=digits  as --data of train.py
--data-dir
--recipe RECIPE=quick  recipe of all runs
--epochs EPOCHS:int  default: from the recipe
--seeds SEEDS:int+  default: 0
--fractions FRACTIONS:float+  shares of the training images; default: 1
--text DIR  prepared text; compares language models
--tasks NAME|FILE|FOLDER+  with --text: as --task of train_text.py; default: sst2
--backend
--out DIR  default: runs/compare-DATA
--runs DIR  folder of the runs; default: OUT/runs
--jobs JOBS:int=1  runs at the same time, which share the cores
--retry  train failed runs again
--json  print the table's rows as JSON
--no-train  table and charts of the existing runs alone

examples:
  apps/compare.py gmlp_n4_32 amlp_n4_32 vit_n4_32 --epochs 3          on handwritten digits
  apps/compare.py gmlp_n4_32 vit_n4_32 --data cifar10 --seeds 0 1 2   three seeds of each
  apps/compare.py gmlp_n4_32 --data cifar10 --fractions 0.1 0.25 0.5 1
  apps/compare.py gmlp_n4_32 mixer_n4_32 --jobs 2   two at once, half the cores each
  apps/compare.py gmlp_n4_32 --data cifar10 -- --set mixup=0.2        further options of a run
  apps/compare.py gmlp_n4_32 vit_n4_32 --seeds 0 1 2 --no-train       the existing runs

  apps/compare.py gmlp_nano bert_nano --text runs/text --tasks sst2 cola --seeds 0 1 2

With --text, the presets are language models (`keras_gmlp.text.PRESETS`): each is pre-trained on the
folder that apps/train_text.py --text prepared, and fine-tuned on each task with each seed. The
table has differences seed by seed.

Writes OUT/results.csv (one row per run), OUT/results.md and charts; runs that apps/export.py has
exported get a table of its cost. The table requires recipe.json, metrics.json and history.csv of a
run, not its model. A sweep that was stopped or killed resumes when the same command is given again;
a run that fails is a row with the reason.
exit codes: 0 all runs complete, 1 some failed or are not done, 2 wrong usage, 130 stopped with
Ctrl-C
"""

# Options of train.py that compare.py reads itself.
OWN = ["--model", "--data", "--recipe", "--epochs", "--seed", "--fraction", "--out", "--backend"]


def check(options):
    options.command = shlex.join(["apps/compare.py", *options.given])
    options.out = Path(options.out or f"runs/compare-{Path(options.text or options.data).name}")
    options.runs = Path(options.runs or options.out / "runs")
    if options.tasks and not options.text:
        raise cli.UsageError("--tasks requires --text DIR, the text to pre-train on")
    if options.text and (options.passed or options.fractions != [1.0]):
        raise cli.UsageError("--text takes neither --fractions nor options after --")
    for output in (options.out, options.runs):
        cli.check_output(output, options.text or options.data, *(options.tasks or ()))


def compare(options):
    """Checks, trains and reports; returns the exit code."""
    with cli.usage_errors():
        plan = make_plan(options)
    cli.import_tensorflow()
    from keras_gmlp.utils.files import directory_lock

    if options.text:
        from keras_gmlp.training.precision import choose_in_child

        precision = choose_in_child(options.runs / options.presets[0], plan.backend)
        plan = make_plan(options, precision)
    plan.check_recorded(plan.backend)
    try:
        if not options.no_train:
            with directory_lock(options.runs):  # a second sweep would overwrite the same runs
                for run in plan.runs if options.retry else ():
                    run.forget_failure()
                plan.work()
        return report(options, plan)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("stopped; the same command resumes the sweep.") from None


def make_plan(options, precision=None):
    """Returns the `Plan` that the options describe; a `ValueError` names a wrong option."""
    from keras_gmlp.comparison import Plan, plan_images, plan_texts
    from keras_gmlp.runs.settings import RunSettings

    if options.text:
        names = ("recipe", "data_dir")
        given = {name: getattr(options, name) for name in names} | {"precision": precision}
        shared = RunSettings(prepared=options.text, **given)
        tasks = options.tasks or ["sst2"]
        runs = plan_texts(
            options.presets, shared, tasks, options.runs, options.seeds, options.epochs
        )
    else:
        shared = read_shared(options)
        runs = plan_images(options.presets, shared, options.runs, options.seeds, options.fractions)
    plan = Plan(runs, options.jobs, options.backend)
    if options.text and not (options.no_train or Path(options.text).is_dir()):
        raise ValueError(f"{options.text}: no such folder; apps/train_text.py --text prepares one.")
    return plan


def read_shared(options):
    """Returns the `RunSettings` of all runs on images; what follows `--` is read as by train.py."""
    from keras_gmlp.data.datasets import check_path, require_one_label
    from keras_gmlp.models.presets import lookup

    for preset in options.presets:
        lookup(preset)
    if not options.no_train:
        check_path(options.data)
        require_one_label(options.data)
    for word in options.passed:
        if word.split("=")[0] in OWN:
            raise ValueError(f"give what {word} says before --, as an argument of compare.py")
    parser = Parser(prog="compare.py PRESET ... --", allow_abbrev=False)
    parser.add_options(list_run_options(RECIPE_OF_A_SWEEP))
    own = ["--data", options.data, "--recipe", options.recipe, "--seed", str(options.seeds[0])]
    own += ["--epochs", str(options.epochs)] if options.epochs is not None else []
    own += ["--data-dir", options.data_dir] if options.data_dir else []
    settings = read_settings(parser.parse_args([*options.passed, *own]))
    recipe = settings.make_recipe()
    if recipe.seed != options.seeds[0] or options.epochs not in (None, recipe.epochs):
        raise ValueError("give seeds and epochs as --seeds and --epochs, before --")
    return settings


def report(options, plan):
    """Writes table and charts, prints what is missing; returns the exit code."""
    from keras_gmlp.comparison import costs, write_report

    runs = [run for run in plan.runs if not options.no_train or run.begun or run.failed]
    complete = [run for run in runs if run.complete]
    if not runs:
        raise ValueError(f"{options.runs} has none of these runs; leave out --no-train")
    warn_of_left_out(options.out / "results.csv", runs)
    write_report(runs, options.out, options.command)  # first, whatever fails below
    measured = {} if options.text else costs.measure_costs(complete, warn)
    rows, paths = write_report(runs, options.out, options.command, measured)
    shown = list_scores(runs) if options.text else rows
    cli.show_result(options, shown, lambda rows: print(*paths, sep="\n"))
    failed = [run for run in runs if run.failed]
    for run in failed:
        warn(f"{run.name}: {run.status}")
    if failed:
        warn("--retry tries them again")
    if missing := len(runs) - len(complete) - len(failed):
        warn(f"{missing} of {len(runs)} runs are not done")
    return 1 if failed or missing else 0


def warn_of_left_out(path, runs):
    """Warns if an earlier table has complete runs that these are without."""
    from keras_gmlp.utils.errors import first_of

    if not path.exists():
        return
    with open(path, newline="") as file:
        before = [row["name"] for row in csv.DictReader(file) if row.get("status") == "complete"]
    if missed := [name for name in before if name not in {run.name for run in runs}]:
        warn(
            f"the table no longer contains {first_of(missed, 3)}; give all presets, seeds and "
            "fractions at once to keep them"
        )


def list_scores(runs):
    """Returns a dict for each language model, with the scores of its tasks by seed."""
    models = {}
    for run in runs:
        if run.settings.kind == "prepared":
            perplexity = run.metrics.get("test_perplexity")
            row = {"preset": run.preset, "parameters": run.metrics.get("parameters")}
            row |= {"perplexity": perplexity, "scores": {}, "single": {}}
            models[run.settings.out] = row
    for run in (run for run in runs if run.source and run.settings.weights in models):
        row, task = models[run.settings.weights], run.settings.task
        scores, single = row["scores"].setdefault(task, {}), row["single"].setdefault(task, [])
        if run.complete:
            scores[run.seed] = run.score
            single += [run.seed] * run.one_class
    return list(models.values())


def warn(text):
    print_error("compare", text)


SETTINGS = {"seeds": {"default": [0]}, "fractions": {"default": [1.0]}}
main = cli.Program("compare", __doc__, USAGE, compare, check, passes_on=True, **SETTINGS)
