"""Trains many models under one recipe and compares them: a table and charts."""

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
--jobs JOBS:int=1  runs at the same time, which share the cores; of several GPUs each takes one
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
        sweep = make_text_sweep(options) if options.text else make_sweep(options)
    cli.import_tensorflow()
    from keras_gmlp.utils.files import directory_lock

    if options.text:
        from keras_gmlp.training.precision import choose_in_child

        precision = choose_in_child(options.runs / options.presets[0], sweep.backend)
        sweep = make_text_sweep(options, precision=precision)
    sweep.check_recorded()
    try:
        if not options.no_train:
            with directory_lock(options.runs):  # a second sweep would overwrite the same runs
                for run in sweep.runs if options.retry else ():
                    run.forget_failure()
                sweep.work()
        report = report_texts if options.text else report_images
        return report(options, sweep)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("stopped; the same command resumes the sweep.") from None


def make_text_sweep(options, **changes):
    """Returns the `TextSweep` that the options describe, with changes of all recipes."""
    from keras_gmlp.comparison.texts import TextSweep

    names = ("seeds", "recipe", "epochs", "data_dir", "jobs", "backend")
    given = {name: getattr(options, name) for name in names}
    places = options.text, options.tasks or ["sst2"], options.runs
    return TextSweep(options.presets, *places, changes=changes, **given)


def report_texts(options, sweep):
    """Writes table and charts of language models; returns the exit code."""
    from keras_gmlp.comparison import texts

    require_runs(options, sweep.complete)
    rows = sweep.rows()
    paths = texts.write_results(rows, options.out, options.command)
    failed = [f"{run.name}: {run.status}" for run in sweep.runs if run.failed]
    return finish(options, rows, paths, failed, sweep.runs, sweep.complete)


def require_runs(options, runs):
    """Raises a `ValueError` if --no-train finds no run to report."""
    if options.no_train and not runs:
        raise ValueError(f"{options.runs} has none of these runs; leave out --no-train")


def finish(options, rows, paths, failed, runs, complete):
    """Prints the result, why runs failed and how many are missing; returns the exit code."""
    cli.show_result(options, rows, lambda rows: print(*paths, sep="\n"))
    for line in failed:
        warn(line)
    if failed:
        warn("--retry tries them again")
    if missing := len(runs) - len(complete) - len(failed):
        warn(f"{missing} of {len(runs)} runs are not done")
    return 1 if failed or missing else 0


def warn(text):
    print_error("compare", text)


def make_sweep(options):
    """Returns the `Sweep` that the options describe; a `ValueError` names a wrong option."""
    from keras_gmlp.comparison import Sweep
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
    # Of all runs; what follows `--` is read as by train.py.
    parser = Parser(prog="compare.py PRESET ... --", allow_abbrev=False)
    parser.add_options(list_run_options(RECIPE_OF_A_SWEEP))
    own = ["--data", options.data, "--recipe", options.recipe, "--seed", str(options.seeds[0])]
    own += ["--epochs", str(options.epochs)] if options.epochs is not None else []
    own += ["--data-dir", options.data_dir] if options.data_dir else []
    settings = read_settings(parser.parse_args([*options.passed, *own]))
    recipe = settings.make_recipe()
    if recipe.seed != options.seeds[0] or options.epochs not in (None, recipe.epochs):
        raise ValueError("give seeds and epochs as --seeds and --epochs, before --")
    given = {n: getattr(options, n) for n in ("seeds", "fractions", "jobs", "backend")}
    return Sweep(options.presets, settings, options.runs, **given)


def report_images(options, sweep):
    """Writes table and charts; returns the exit code."""
    from keras_gmlp.comparison import charts, costs, images
    from keras_gmlp.utils.environment import processor
    from keras_gmlp.utils.errors import first_of
    from keras_gmlp.utils.files import atomic_write

    runs = [run for run in sweep.runs if not options.no_train or run.begun or run.failed]
    require_runs(options, runs)
    complete = [run for run in runs if run.complete]
    rows = [images.to_row(run) for run in runs]
    missed = images.find_left_out(options.out / "results.csv", rows)
    if missed:
        warn(
            f"the table no longer contains {first_of(missed, 3)}; give all presets, seeds and "
            "fractions at once to keep them"
        )
    images.write_results(runs, options.out / "results.csv")  # first, whatever fails below
    of_presets = costs.measure_costs(complete, warn)
    rows = images.write_results(runs, options.out / "results.csv", of_presets)
    with atomic_write(options.out / "results.md") as temporary:
        text = images.to_markdown(rows, options.command, processor())
        temporary.write_text(text + images.exports_to_markdown(complete))
    written = [options.out / "results.md", options.out / "results.csv"]
    if complete:
        written += charts.draw_comparison(complete, rows, options.out)
    failed = [
        f"{row['preset']} seed {row['seed']}: {row['status']}"
        for row in rows
        if row["status"].startswith("failed")
    ]
    return finish(options, rows, written, failed, runs, complete)


SETTINGS = {"seeds": {"default": [0]}, "fractions": {"default": [1.0]}}
main = cli.Program("compare", __doc__, USAGE, compare, check, passes_on=True, **SETTINGS)
