"""Trains many models under one recipe and compares them: a table and charts."""

import shlex
from pathlib import Path

from keras_gmlp.programs.shared import cli
from keras_gmlp.programs.shared.messages import print_error
from keras_gmlp.programs.shared.run_options import list_run_options, read_settings

USAGE = f"""\
presets PRESET|PLAN.json+  as --model of train.py; or a file with the runs, a JSON list of objects
    that have the options of train.py by name, the most wanted first
--seeds SEEDS:int+  default: 0
--fractions FRACTIONS:float+  shares of the training images; default: 1
--tasks NAME|FILE|FOLDER+  with --prepared: as --task of train.py; default: sst2
--runs DIR  folder of the runs; default: OUT/runs
--jobs JOBS:int=1  runs at the same time, which share the cores
--no-train  only table and charts of the existing runs
--json  print the table's rows as JSON
{list_run_options("model", "seed", "fraction", "task", "column", "label", "test", "hold-out")}
examples:
  apps/compare.py gmlp_n4_32 amlp_n4_32 vit_n4_32 --epochs 3          on handwritten digits
  apps/compare.py gmlp_n4_32 vit_n4_32 --data cifar10 --seeds 0 1 2   three seeds of each
  apps/compare.py gmlp_n4_32 --data cifar10 --fractions 0.1 0.25 0.5 1 --set mixup=0.2
  apps/compare.py gmlp_n4_32 mixer_n4_32 --jobs 2   two at once, half the cores each
  apps/compare.py gmlp_n4_32 vit_n4_32 --seeds 0 1 2 --no-train       the existing runs

  apps/compare.py gmlp_nano bert_nano --prepared runs/text --tasks sst2 cola --seeds 0 1 2
  apps/compare.py docs/plans/families.json --jobs 2               the runs in a file

With --prepared, the presets are language models (`keras_gmlp.text.PRESETS`): each is pre-trained on
the folder that apps/train.py --text prepared, and fine-tuned on each task with each seed. The table
has differences seed by seed. --out is by default runs/compare-DATA, or of a file runs/compare-FILE.

Writes OUT/results.csv (one row per run), OUT/results.md and charts. The table requires recipe.json,
metrics.json and history.csv of a run, the costs its model, too. A sweep that was stopped or killed
resumes when the same command is given again, which also tries runs again that failed. A failed run
is a row with the reason.
exit codes: 0 all runs complete, 1 some failed or are not done, 2 wrong usage, 130 stopped with
Ctrl-C
"""


# Options that go with a file of runs. The file holds all others.
OF_PLANS = ("presets", "out", "jobs", "no_train", "json", "backend", "data_dir")


def check(options):
    options.command = shlex.join(["apps/compare.py", *options.given])
    options.model, data = options.presets[0], options.prepared or options.data or "digits"
    options.plan = options.model if options.model.endswith(".json") else None
    name = Path(options.plan).stem if options.plan else Path(data).name
    options.out = options.out or f"runs/compare-{name}"
    if options.plan:
        if len(options.presets) > 1:
            raise cli.UsageError(f"{options.plan} has all runs; no {options.presets[1]}")
        for name, usual in vars(main.parser.parse_args([options.plan])).items():
            if name not in OF_PLANS and getattr(options, name) != usual:
                option = f"--{name.replace('_', '-')}"
                raise cli.UsageError(f"{options.plan} has the settings of its runs; no {option}")
        cli.check_output(options.out, options.plan)
        return
    options.runs = Path(options.runs or Path(options.out, "runs"))
    if options.tasks and not options.prepared:
        raise cli.UsageError("--tasks requires --prepared DIR, the text to pre-train on")
    if options.prepared and options.fractions != [1.0]:
        raise cli.UsageError("--fractions are of images, not of --prepared")
    for output in (options.out, options.runs):
        cli.check_output(output, data, *(options.tasks or ()))


def compare(options):
    """Checks, trains and reports; returns the exit code."""
    from keras_gmlp.comparison.plan import Plan, read_plan

    with cli.usage_errors():
        runs = read_plan(options.plan) if options.plan else list_runs(options)
        plan = Plan(runs, options.jobs, options.backend)
    cli.import_tensorflow()
    from keras_gmlp.utils.files import directory_lock

    if not options.plan and "precision" not in runs[0].changes:  # one for all
        from keras_gmlp.training.precision import choose_in_child

        known = next((run for run in plan.runs if run.begun), plan.runs[0])
        precision = choose_in_child(known.directory, plan.backend)
        runs = [run.with_changes(precision=precision) for run in runs]
        plan = Plan(runs, options.jobs, options.backend)
    plan.check_recorded(options.backend if options.no_train else plan.backend)
    try:
        if not options.no_train:
            # A second sweep would overwrite the same runs.
            with directory_lock(plan.runs[0].directory.parent):
                plan.work()
        return report(options, plan)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("stopped; the same command resumes the sweep.") from None


def list_runs(options):
    """Returns the settings of the runs of presets; a `ValueError` names a wrong option."""
    from keras_gmlp.comparison.plan import plan_images, plan_texts
    from keras_gmlp.data.datasets import check_path

    shared = read_settings(options)
    if taken := {"seed", "epochs"} & shared.set.keys():
        raise ValueError(f"give {taken.pop()} by its own option, --seeds or --epochs")
    place = options.presets, shared
    if options.prepared:
        if not (options.no_train or Path(options.prepared).is_dir()):
            raise ValueError(
                f"{options.prepared}: no such folder; apps/train.py --text prepares one."
            )
        return plan_texts(*place, options.tasks or ["sst2"], options.runs, options.seeds)
    if not options.no_train:
        check_path(shared.data)
    return plan_images(*place, options.runs, options.seeds, options.fractions)


def report(options, plan):
    """Writes table and charts, prints what is missing; returns the exit code."""
    from keras_gmlp.comparison import costs
    from keras_gmlp.comparison.plan_report import write_report

    runs = [run for run in plan.runs if not options.no_train or run.begun]
    complete = [run for run in runs if run.complete]
    if not runs:
        raise ValueError("none of these runs exists; leave out --no-train")
    rows, paths = write_report(runs, options.out, options.command)  # first, whatever fails below
    if not (options.plan or options.prepared):  # the runs of a preset have the same costs
        measured = costs.measure_costs(complete, warn)
        rows, paths = write_report(runs, options.out, options.command, measured)
    cli.show_result(options, rows, lambda rows: print(*paths, sep="\n"))
    failed = [run for run in runs if run.failure]
    for run in failed:
        warn(f"{run.name}: {run.status}")
    if missing := len(runs) - len(complete) - len(failed):
        warn(f"{missing} of {len(runs)} runs are not done")
    return 1 if failed or missing else 0


def warn(text):
    print_error("compare", text)


SETTINGS = {"seeds": {"default": [0]}, "fractions": {"default": [1.0]}}
main = cli.Program("compare", __doc__, USAGE, compare, check, **SETTINGS)
