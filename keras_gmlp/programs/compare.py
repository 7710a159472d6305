"""Trains many models under one recipe and compares them: a table and charts."""

import shlex
from pathlib import Path

from keras_gmlp.programs.shared import cli
from keras_gmlp.programs.shared.run_options import list_run_options, read_settings
from keras_gmlp.utils.files import directory_lock, require_output

USAGE = f"""\
presets PRESET|PLAN.json+  as --model of train.py; or a file with the runs, a JSON list of objects
    that have the options of train.py by name, the most wanted first
--seeds SEEDS:int+  default: 0
--fractions FRACTIONS:float+  shares of the training images; default: 1
--tasks NAME|FILE|FOLDER+  with --prepared: as --task of train.py; default: sst2
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

Writes OUT/results.csv (one row per run), OUT/results.md and charts; the runs of presets are folders
in OUT/runs. The table requires recipe.json, metrics.json and history.csv of a run, the costs its
model, too. A sweep that was stopped or killed resumes when the same command is given again, which
also tries runs again that failed. A failed run is a row with the reason.
exit codes: 0 all runs complete, 1 some failed or are not done, 2 wrong usage, 130 stopped with
Ctrl-C
"""


# Options that go with a file of runs. The file holds all others.
OF_PLANS = ("--out", "--jobs", "--no-train", "--json", "--backend", "--data-dir")


def check(options):
    """Adds the plan to the options; a `ValueError` names a wrong one."""
    from keras_gmlp.comparison.plan import Plan, read_plan

    options.model, data = options.presets[0], options.prepared or options.data or "digits"
    options.file = options.model if options.model.endswith(".json") else None
    name = Path(options.file).stem if options.file else Path(data).name
    options.out = options.out or f"runs/compare-{name}"
    if options.file:
        given = [word.partition("=")[0] for word in options.given if word.startswith("--")]
        others = [*options.presets[1:], *(option for option in given if option not in OF_PLANS)]
        if others:
            raise ValueError(f"{options.file} has all runs and their settings; no {others[0]}")
        require_output(options.out, options.file)
        runs = read_plan(options.file)
    else:
        require_output(options.out, data, *(options.tasks or ()))
        runs = list_runs(options)
    options.plan = Plan(runs, options.jobs, options.backend)


def list_runs(options):
    """Returns the settings of the runs of presets."""
    from keras_gmlp.comparison.plan import plan_images, plan_texts
    from keras_gmlp.data.datasets import check_path

    if options.tasks and not options.prepared:
        raise ValueError("--tasks requires --prepared DIR, the text to pre-train on")
    if options.prepared and options.fractions:
        raise ValueError("--fractions are of images, not of --prepared")
    shared = read_settings(options)
    if taken := {"seed", "epochs"} & shared.set.keys():
        raise ValueError(f"give {taken.pop()} by its own option, --seeds or --epochs")
    place, seeds = Path(options.out, "runs"), options.seeds or [0]
    if options.prepared:
        if not (options.no_train or Path(options.prepared).is_dir()):
            raise ValueError(
                f"{options.prepared}: no such folder; apps/train.py --text prepares one."
            )
        return plan_texts(options.presets, shared, options.tasks or ["sst2"], place, seeds)
    if not options.no_train:
        check_path(shared.data)
    return plan_images(options.presets, shared, place, seeds, options.fractions or [1.0])


def compare(options):
    """Trains and reports."""
    cli.import_tensorflow()
    plan = options.plan
    if not options.file and "precision" not in plan.runs[0].settings.changes:  # one for all
        from keras_gmlp.training.precision import choose_in_child

        known = next((run for run in plan.runs if run.begun), plan.runs[0])
        precision = choose_in_child(known.directory, plan.backend)
        for run in plan.runs:
            run.settings = run.settings.with_changes(precision=precision)
    plan.check_recorded(options.backend if options.no_train else plan.backend)
    try:
        if not options.no_train:
            # A second sweep would overwrite the same runs.
            with directory_lock(plan.runs[0].directory.parent):
                plan.work()
        report(options, plan)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("stopped; the same command resumes the sweep.") from None


def report(options, plan):
    """Writes table and charts, and prints what is missing."""
    from keras_gmlp.comparison import costs
    from keras_gmlp.comparison.plan_report import write_report

    runs = [run for run in plan.runs if not options.no_train or run.begun]
    if not runs:
        raise ValueError("none of these runs exists; leave out --no-train")
    complete = [run for run in runs if run.complete]
    place = options.out, shlex.join(["apps/compare.py", *options.given])
    rows, paths = write_report(runs, *place)  # first, whatever fails below
    if not (options.file or options.prepared):  # the runs of a preset have the same costs
        measured = costs.measure_costs(complete, lambda text: cli.fail(options, text, code=0))
        rows, paths = write_report(runs, *place, measured)
    cli.show_result(options, rows, lambda rows: print(*paths, sep="\n"))
    failed = [run for run in runs if run.failure]
    for run in failed:
        cli.fail(options, f"{run.name}: {run.status}")
    if missing := len(runs) - len(complete) - len(failed):
        cli.fail(options, f"{missing} of {len(runs)} runs are not done")


main = cli.Program("compare", __doc__, USAGE, compare, check)
