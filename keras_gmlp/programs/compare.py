"""Trains many models under one recipe and compares them: a table and charts."""

import json
import shlex
import sys
from pathlib import Path

from keras_gmlp.programs.shared import cli
from keras_gmlp.programs.shared.run_options import add_run_options, read_settings

EPILOG = """\
examples:
  apps/compare.py gmlp_n4_32 amlp_n4_32 vit_n4_32 --epochs 3          on handwritten digits
  apps/compare.py gmlp_n4_32 vit_n4_32 --data cifar10 --seeds 0 1 2   three seeds of each
  apps/compare.py gmlp_n4_32 --data cifar10 --fractions 0.1 0.25 0.5 1
  apps/compare.py gmlp_n4_32 mixer_n4_32 --jobs 2   two at once, half the cores each
  apps/compare.py gmlp_n4_32 --data cifar10 -- --set mixup=0.2        further options of a run
  apps/compare.py gmlp_n4_32 vit_n4_32 --seeds 0 1 2 --no-train       the existing runs

  apps/compare.py gmlp_nano bert_nano --text runs/text --tasks sst2 cola --seeds 0 1 2

With --text, the presets are language models (`keras_gmlp.text.PRESETS`): each is pre-trained on the
folder that `python -m keras_gmlp.data.text.corpus` wrote, and fine-tuned on each task with each
seed. The table has what classifiers without a network reach, and differences seed by seed.

Writes OUT/results.csv (one row per run), OUT/results.md and charts; runs that apps/export.py has
exported get a table of its cost. The table requires recipe.json, metrics.json and history.csv of a
run, not its model. A sweep that was stopped or killed resumes when the same command is given again;
a run that fails is a row with the reason.
exit codes: 0 all runs complete, 1 some failed or are not done, 2 wrong usage, 130 stopped with
Ctrl-C
"""

# Options of train.py that compare.py reads itself.
OWN = ["--model", "--data", "--recipe", "--epochs", "--seed", "--fraction", "--out", "--backend"]


def parse(arguments):
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    own, passed = arguments, []
    if "--" in arguments:
        own, passed = arguments[: arguments.index("--")], arguments[arguments.index("--") + 1 :]
    parser = cli.Parser(description=__doc__, epilog=EPILOG)
    parser.add_argument("presets", nargs="+", metavar="PRESET", help="as --model of train.py")
    parser.add_argument(
        "--data", default="digits", metavar="NAME|FOLDER", help="as --data of train.py"
    )
    cli.add_data_dir(parser)
    parser.add_argument(
        "--recipe", default="quick", help="recipe of all runs; default: %(default)s"
    )
    parser.add_argument("--epochs", type=int, help="default: from the recipe")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="default: 0")
    parser.add_argument(
        "--fractions",
        type=float,
        nargs="+",
        default=[1.0],
        help="shares of the training images; default: 1",
    )
    parser.add_argument("--text", metavar="DIR", help="prepared text; compares language models")
    parser.add_argument(
        "--tasks",
        nargs="+",
        metavar="NAME|FILE|FOLDER",
        help="with --text: as --task of train_text.py; default: sst2",
    )
    cli.add_backend(parser)
    parser.add_argument("--out", metavar="DIR", help="default: runs/compare-DATA")
    parser.add_argument("--runs", metavar="DIR", help="folder of the runs; default: OUT/runs")
    parser.add_argument(
        "--jobs",
        type=int,
        default=1,
        help="runs at the same time, which share the cores; of several GPUs each takes one; "
        "default: 1",
    )
    parser.add_argument("--retry", action="store_true", help="train failed runs again")
    parser.add_argument("--json", action="store_true", help="print the table's rows as JSON")
    parser.add_argument(
        "--no-train", action="store_true", help="table and charts of the existing runs alone"
    )
    options = parser.parse_args(own)
    options.passed = passed
    options.command = " ".join(["apps/compare.py", *map(shlex.quote, arguments)])
    options.out = Path(options.out or f"runs/compare-{Path(options.text or options.data).name}")
    options.runs = Path(options.runs or options.out / "runs")
    if options.tasks and not options.text:
        parser.error("--tasks requires --text DIR, the text to pre-train on")
    if options.text and (passed or options.jobs != 1 or options.fractions != [1.0]):
        parser.error("--text takes neither --jobs, nor --fractions, nor options after --")
    for output in (options.out, options.runs):
        parser.check_output(output, options.text or options.data, *(options.tasks or ()))
    return parser, options


def main(arguments=None):
    parser, options = parse(arguments)
    return cli.guarded("compare", lambda: compare(parser, options))


def compare(parser, options):
    """Checks, trains and reports; returns the exit code."""
    try:
        sweep = make_text_sweep(options) if options.text else make_sweep(options)
    except ValueError as error:
        parser.error(str(error))
    cli.import_tensorflow()
    if options.text:
        return compare_texts(options)
    from keras_gmlp.utils.files import directory_lock

    sweep.check_recorded()
    try:
        if options.no_train:
            runs = [run for run in sweep.runs if run.begun or run.failed]
            if not runs:
                raise ValueError(f"{options.runs} has none of these runs; leave out --no-train")
            return report(options, runs)
        with directory_lock(options.runs):  # a second sweep would overwrite the same runs
            if options.retry:
                for run in sweep.runs:
                    run.forget_failure()
            sweep.work()
        return report(options, sweep.runs)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("stopped; the same command resumes the sweep.") from None


def make_text_sweep(options, **changes):
    """Returns the `TextSweep` that the options describe, with changes of all recipes."""
    from keras_gmlp.comparison.texts import TextSweep

    return TextSweep(
        options.presets,
        options.text,
        options.tasks or ["sst2"],
        options.runs,
        seeds=options.seeds,
        recipe=options.recipe,
        changes=changes,
        epochs=options.epochs,
        data_dir=options.data_dir,
    )


def compare_texts(options):
    """Trains language models, fine-tunes them and reports; returns the exit code."""
    from keras_gmlp.comparison import texts
    from keras_gmlp.training.precision import choose_precision
    from keras_gmlp.utils.files import directory_lock

    precision = choose_precision(options.runs / options.presets[0])
    sweep = make_text_sweep(options, precision=precision)
    sweep.check_recorded()
    if options.no_train and not sweep.complete:
        raise ValueError(f"{options.runs} has none of these runs; leave out --no-train")
    failed = {}
    if not options.no_train:
        with directory_lock(options.runs):
            failed = sweep.work(warn, verbose=0 if options.json else 2)
    rows = sweep.rows()
    floors = find_floors(sweep.tasks)
    paths = texts.write_results(rows, options.out, options.command, floors)
    if options.json:
        print(json.dumps(rows))
    else:
        print(*paths, sep="\n")
    for place, reason in failed.items():
        warn(f"{place}: {reason}")
    if missing := len(sweep.runs) - len(sweep.complete):
        warn(f"{missing} of {len(sweep.runs)} runs are not done")
    return 1 if missing else 0


def find_floors(tasks):
    """Returns what classifiers without a network reach, for the tasks that have any."""
    from keras_gmlp.comparison.plan import measure_of
    from keras_gmlp.comparison.texts import best_floor
    from keras_gmlp.data.text.sentences import load_text
    from keras_gmlp.evaluation.floors import compute_floors

    floors = {}
    for task in tasks:
        measure = measure_of(task)
        if measure.published:
            floors[task] = measure.published
        if measure.published or not measure.floor:
            continue
        try:
            floors[task] = best_floor(task, compute_floors(load_text(task)))
        except (ValueError, ImportError) as error:
            warn(f"no floor for {task}: {error}")
    return floors


def warn(text):
    print(f"compare: {cli.one_line(text)}", file=sys.stderr, flush=True)


def make_sweep(options):
    """Returns the `Sweep` that the options describe.

    Raises:
        ValueError: If an option is wrong.
    """
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
    settings = shared_settings(options)
    recipe = settings.make_recipe()
    if recipe.seed != options.seeds[0] or options.epochs not in (None, recipe.epochs):
        raise ValueError("give seeds and epochs as --seeds and --epochs, before --")
    return Sweep(
        options.presets,
        settings,
        options.runs,
        seeds=options.seeds,
        fractions=options.fractions,
        jobs=options.jobs,
        backend=options.backend,
    )


def shared_settings(options):
    """Returns the `RunSettings` that all runs share; what follows `--` is read as by train.py."""
    parser = cli.Parser(prog="compare.py PRESET ... --", allow_abbrev=False)
    add_run_options(parser)
    own = ["--data", options.data, "--recipe", options.recipe, "--seed", str(options.seeds[0])]
    own += ["--epochs", str(options.epochs)] if options.epochs is not None else []
    own += ["--data-dir", options.data_dir] if options.data_dir else []
    return read_settings(parser.parse_args([*options.passed, *own]))


def report(options, runs):
    """Writes table and charts; returns the exit code."""
    from keras_gmlp.comparison import charts, costs, results
    from keras_gmlp.utils.environment import processor
    from keras_gmlp.utils.errors import first_of
    from keras_gmlp.utils.files import atomic_write

    complete = [run for run in runs if run.complete]
    rows = [results.to_row(run) for run in runs]
    missed = results.find_left_out(options.out / "results.csv", rows)
    if missed:
        warn(
            f"the table no longer contains {first_of(missed, 3)}; give all presets, seeds and "
            "fractions at once to keep them"
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
