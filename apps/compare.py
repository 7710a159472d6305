#!/usr/bin/env python3
"""Trains many models under one recipe and compares them: a table and charts."""

import argparse
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

EPILOG = """\
examples:
  apps/compare.py gmlp_n4_32 amlp_n4_32 vit_n4_32 --epochs 3          on handwritten digits
  apps/compare.py gmlp_n4_32 vit_n4_32 --data cifar10 --seeds 0 1 2   three seeds of each
  apps/compare.py gmlp_n4_32 --data cifar10 --fractions 0.1 0.25 0.5 1
  apps/compare.py gmlp_n4_32 mixer_n4_32 --data cifar10 --jobs 2      two at once, a core each
  apps/compare.py gmlp_n4_32 --data cifar10 -- --set mixup=0.2        what follows goes to train.py

Writes OUT/results.csv (one row a run), OUT/results.md and charts. A sweep that was stopped or
killed goes on when the same command is given again; a run that fails is a row that says so.
exit codes: 0 all runs complete, 1 some failed, 2 wrong usage, 130 stopped with Ctrl-C
"""
TRAIN = Path(__file__).resolve().parent / "train.py"


def parse(arguments):
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    own, passed = arguments, []
    if "--" in arguments:
        own, passed = arguments[: arguments.index("--")], arguments[arguments.index("--") + 1 :]
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("presets", nargs="+", metavar="PRESET")
    parser.add_argument("--data", default="digits", metavar="NAME|FOLDER", help="as of train.py")
    parser.add_argument("--recipe", default="quick", help="of all runs; default: %(default)s")
    parser.add_argument("--epochs", type=int, help="default: the recipe's")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="default: 0")
    parser.add_argument(
        "--fractions", type=float, nargs="+", default=[1.0], help="of the training images"
    )
    parser.add_argument("--backend", choices=["tensorflow", "jax", "torch"], help="of Keras")
    parser.add_argument("--out", metavar="DIR", help="default: runs/compare-DATA")
    parser.add_argument("--runs", metavar="DIR", help="where the runs lie; default: OUT/runs")
    parser.add_argument(
        "--jobs", type=int, default=1, help="runs at once, which share the cores; default: 1"
    )
    parser.add_argument("--retry", action="store_true", help="try runs again that failed before")
    parser.add_argument("--no-train", action="store_true", help="table and charts of what is there")
    options = parser.parse_args(own)
    options.passed = passed
    options.command = " ".join(["apps/compare.py", *map(shlex.quote, arguments)])
    options.out = Path(options.out or f"runs/compare-{Path(options.data).name}")
    options.runs = Path(options.runs or options.out / "runs")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # TensorFlow's notes to its developers
    return parser, options


def main(arguments=None):
    parser, options = parse(arguments)
    try:
        check(options)
    except ValueError as error:
        parser.error(str(error))
    from keras_gmlp.comparison import plan

    runs = plan(options.presets, options.seeds, options.fractions, options.runs)
    try:
        if not options.no_train:
            Sweep(options, runs).work()
    except KeyboardInterrupt:
        print("\ncompare: stopped; the same command goes on.", file=sys.stderr)
        return 130
    except OSError as error:
        print(f"compare: {error}", file=sys.stderr)
        return 1
    return report(options, runs)


def check(options):
    """Raises a ValueError for wrong usage, before anything is trained."""
    from keras_gmlp.presets import lookup
    from keras_gmlp.recipes import RECIPES

    for preset in options.presets:
        lookup(preset)
    if options.recipe not in RECIPES:
        raise ValueError(f"Unknown recipe {options.recipe!r}. There are: {', '.join(RECIPES)}.")
    if not all(0 < fraction <= 1 for fraction in options.fractions):
        raise ValueError(f"--fractions must be in (0, 1]; received {options.fractions}")
    if options.jobs < 1 or (options.epochs is not None and options.epochs < 1):
        raise ValueError("--jobs and --epochs must be at least 1")
    for name in ("presets", "seeds", "fractions"):
        values = getattr(options, name)
        setattr(options, name, list(dict.fromkeys(values)))  # each once


class Sweep:
    """Trains what is not complete, some runs at a time, each in a process of its own."""

    def __init__(self, options, runs):
        from keras_gmlp.recipes import RECIPES

        self.options = options
        self.runs = runs
        self.epochs = options.epochs or RECIPES[options.recipe].epochs
        self.waiting = []
        self.working = {}  # run: (process, cores)
        cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
        size = max(1, len(cores) // options.jobs)
        self.free = [cores[i * size : (i + 1) * size] for i in range(options.jobs)]
        self.line = ""

    def work(self):
        for run in self.runs:
            if self.options.retry:
                run.forget_failure()
            if not run.complete and not run.failed:
                self.waiting.append(run)
        self.began, self.done_before = time.time(), self.done()
        try:
            while self.waiting or self.working:
                while self.waiting and self.free:
                    self.start(self.waiting.pop(0), self.free.pop())
                self.collect()
                self.show()
                time.sleep(0.5)
        finally:
            for process, _ in self.working.values():
                process.terminate()
                process.wait()
            if sys.stdout.isatty() and self.line:
                print()

    def start(self, run, cores):
        """Starts train.py on some of the cores; it ends when this process does."""
        options = self.options
        command = [sys.executable, str(TRAIN), "--model", run.preset, "--data", options.data]
        command += ["--recipe", options.recipe, "--epochs", str(self.epochs)]
        command += ["--seed", str(run.seed), "--fraction", str(run.fraction)]
        command += ["--out", str(run.directory), "--json", "--no-export", "--stop-with-parent"]
        command += ["--backend", options.backend] if options.backend else []
        run.directory.mkdir(parents=True, exist_ok=True)
        environment = dict(os.environ)
        everywhere = None
        if cores and options.jobs > 1:
            environment["OMP_NUM_THREADS"] = str(len(cores))
            everywhere = os.sched_getaffinity(0)
            os.sched_setaffinity(0, cores)  # the child inherits it
        try:
            with open(run.directory / "log.txt", "w") as log:
                process = subprocess.Popen(
                    command + options.passed,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=log,
                    env=environment,
                )
        finally:
            if everywhere:
                os.sched_setaffinity(0, everywhere)
        self.working[run] = (process, cores)

    def collect(self):
        """Takes in the runs that ended."""
        for run, (process, cores) in list(self.working.items()):
            if process.poll() is None:
                continue
            process.stdin.close()
            del self.working[run]
            self.free.append(cores)
            if process.returncode == 0:
                (run.directory / "log.txt").unlink(missing_ok=True)
                self.say(f"{run.name}: complete")
                continue
            lines = (run.directory / "log.txt").read_text().strip().splitlines()
            reason = lines[-1] if lines else f"ended by signal {-process.returncode}"
            run.fail(reason)
            self.say(f"{run.name}: failed ({reason})")

    def done(self):
        """Epochs done, weighted by the size of their training set."""
        return sum(run.fraction * len(run.history()) for run in self.runs)

    def show(self):
        """One line for the whole sweep, written over itself on a terminal."""
        if not sys.stdout.isatty():
            return
        complete = sum(run.complete for run in self.runs)
        failed = sum(run.failed for run in self.runs)
        done, now = self.done(), time.time()
        left = sum(
            run.fraction * (self.epochs - len(run.history()))
            for run in (*self.waiting, *self.working)
        )
        rate = (done - self.done_before) / (now - self.began)
        at_work = ", ".join(
            f"{run.name} {len(run.history())}/{self.epochs}" for run in self.working
        )
        line = f"{complete}/{len(self.runs)} runs, {failed} failed | {at_work} | "
        line += f"left {clock(left / rate)}" if rate > 0 else "left ?"
        width = os.get_terminal_size().columns - 1
        print("\r" + line[:width].ljust(min(len(self.line), width)), end="", flush=True)
        self.line = line

    def say(self, text):
        if sys.stdout.isatty():
            print("\r" + " " * len(self.line) + "\r", end="")
        print(text, flush=True)


def clock(seconds):
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02} min" if minutes >= 60 else f"{minutes} min"


def report(options, runs):
    """Writes table and charts; the exit code."""
    from keras_gmlp import charts, comparison
    from keras_gmlp.files import replacing

    complete = [run for run in runs if run.complete]
    costs = comparison.measure_costs(complete)
    rows = comparison.write_results(runs, options.out / "results.csv", costs)
    with replacing(options.out / "results.md") as temporary:
        temporary.write_text(comparison.to_markdown(rows, options.command))
    written = [options.out / "results.md", options.out / "results.csv"]
    if complete:
        written += charts.draw_comparison(complete, rows, options.out)
    for path in written:
        print(path)
    for row in rows:
        if row["status"].startswith("failed"):
            print(f"compare: {row['preset']} seed {row['seed']}: {row['status']}", file=sys.stderr)
    return 0 if len(complete) == len(runs) else 1


if __name__ == "__main__":
    sys.exit(main())
