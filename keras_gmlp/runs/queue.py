"""Trains a list of runs within a time limit: `python -m keras_gmlp.runs.queue PLAN.json`.

For machines that are lent for minutes. PLAN.json holds a list of settings as `RunSettings` takes
them, which are the options of train.py, the most wanted first:

    [{"model": "gmlp_conv_n4_32", "data": "cifar10", "recipe": "long", "out": "runs/a",
      "epochs": 300, "set": {"mixup": 0.2}},
     {"model": "vit_n4_32", "set_model": {"pooling": "attention"}, "data": "cifar10"},
     {"model": "gmlp_small", "prepared": "runs/wiki", "recipe": "standard", "out": "runs/lm"},
     {"weights": "runs/lm", "task": "sst2", "seed": 1, "out": "runs/sst2-1"}]

Runs are trained one after another. Complete ones are skipped and those that were stopped resume, so
that the same command works through the list in several calls. A run that fails does not stop the
others. The exit code is 0 if all runs are complete, 1 otherwise, and 130 after Ctrl-C.
"""

import functools
import gc
import json
import sys
import time
from pathlib import Path

from keras_gmlp.runs.settings import RunSettings
from keras_gmlp.utils.environment import keep_freed_memory
from keras_gmlp.utils.errors import OneLineParser, first_line
from keras_gmlp.utils.files import parse_json, require_output, write_json

LEAST = 20.0  # seconds left for which no further run starts
YEAR = 3e7  # seconds; no limit


def read_plan(path):
    """Returns the settings of the runs in a plan, a list."""
    entries = parse_json(Path(path).read_bytes(), path)
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ValueError(f"{path}: expected a list of objects, one for each run.")
    if not entries:
        raise ValueError(f"{path}: an empty list; expected at least one run.")
    runs = []
    for number, entry in enumerate(entries, 1):
        try:
            runs.append(RunSettings(**entry))
            runs[-1].check()
        except Exception as error:  # a value of any type raises what the first use of it raises
            raise ValueError(f"{path}, run {number}: {first_line(error, 1000)}") from None
    return runs


def work(runs, seconds, report=None, verbose=2):
    """Trains the runs until all are complete or the time is over."""
    import keras

    from keras_gmlp.runs.run import train_run
    from keras_gmlp.training.callbacks import TimeLimitError

    say = functools.partial(print, flush=True)
    end = time.monotonic() + seconds
    results = {run.out: {"state": "waiting"} for run in runs}
    if report:  # now, so that a useless path fails before the work
        write_json(report, results)
    for run in runs:
        left = end - time.monotonic()
        if left < LEAST:
            break
        say(f"{run.out}: begins" + ("" if left > YEAR else f", {max(left, 0):.0f} s left"))
        try:
            metrics = train_run(run, export=False, verbose=verbose, time_limit=left)
            results[run.out] = {"state": "complete", **metrics}
        except TimeLimitError as error:
            results[run.out] = {"state": str(error)}
        except Exception as error:  # the next run may work
            results[run.out] = {"state": f"failed: {first_line(error, 1000)}"}
        say(f"{run.out}: {json.dumps(results[run.out])}")
        if report:
            write_json(report, results)
        distribution = keras.distribution.distribution()
        keras.backend.clear_session()  # forgets it
        keras.distribution.set_distribution(distribution)
        gc.collect()  # arrays on the device
    return results


def main(arguments=None):
    parser = OneLineParser(prog="python -m keras_gmlp.runs.queue", description=__doc__)
    parser.add_argument("plan", metavar="PLAN.json")
    parser.add_argument("--seconds", type=float, default=1e9, help="time limit; default: none")
    parser.add_argument("--report", metavar="FILE", help="JSON of all results, after each run")
    options = parser.parse_args(arguments)
    if not options.seconds >= 0:
        parser.error(f"--seconds must be at least 0; received {options.seconds}")
    try:
        runs = read_plan(options.plan)
        if options.report:
            require_output(options.report, options.plan, option="--report")
    except (ValueError, OSError) as error:
        parser.error(first_line(error, 1000))
    keep_freed_memory()
    try:
        results = work(runs, options.seconds, options.report)
    except KeyboardInterrupt:
        print("\nqueue: stopped; the same command resumes.", file=sys.stderr)
        return 130
    except OSError as error:
        print(f"queue: {first_line(error)}", file=sys.stderr)
        return 1
    return 0 if all(result["state"] == "complete" for result in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
