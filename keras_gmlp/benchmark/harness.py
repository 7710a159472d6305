"""Measures speeds: each candidate in a process of its own, all of them in turns.

A round takes one measurement of each candidate, in alternating order, so that other work on the
machine affects all of them. The table has medians over the rounds, and the median of the ratios to
the reference within each round.
"""

import dataclasses
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import typing
from pathlib import Path

from keras_gmlp.utils.environment import installed_versions, keep_freed_memory, processor
from keras_gmlp.utils.errors import why_ended
from keras_gmlp.utils.markdown import make_table
from keras_gmlp.utils.progress import StatusLine

FIGURES = {  # of a measurement: how the table writes them
    "clock": ("{unit}", "{:,.0f}"),
    "processor": ("per second of CPU time", "{:,.0f}"),
    "ratio": ("relative", "{:.2f}"),
    "share": ("share of peak", "{:.1%}"),
    "memory": ("memory, MB", "{:,.0f}"),
    "accuracy": ("test accuracy", "{:.2%}"),
    "epochs": ("epochs", "{:g}"),
    "seconds": ("seconds", "{:.1f}"),
}


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A way to do the work, measured in a process of its own."""

    name: str
    measure: typing.Callable | None  # of (options, folder); returns some of the `FIGURES`
    reference: str  # the candidate that the ratio compares it with
    environment: dict = dataclasses.field(default_factory=dict)
    script: tuple = ()  # arguments to Python that measure it without this package


class Workload:
    """A speed to measure; the docstring of a subclass is its help, `name` stands in the command."""

    options: typing.ClassVar = {}  # by name a default and a help, or arguments of `add_argument`
    unit = "images/s"
    versions = ("keras", "tensorflow-cpu", "tensorflow", "jax", "torch", "timm")
    compared = "clock"  # the figure whose ratio the table has, or None

    def check(self, options):
        """Raises a `ValueError` if no candidate could work with the options."""

    def prepare(self, options, folder):
        """Writes what the candidates read to a folder."""


def run(workload, options, arguments):
    """Measures all candidates and prints the table; returns 1 if one failed."""
    candidates = {candidate.name: candidate for candidate in workload.candidates(options)}
    if options.candidate:  # this is the process of one
        keep_freed_memory()  # as the programs that train do
        print(json.dumps(candidates[options.candidate].measure(options, options.folder)))
        return 0
    line = StatusLine(log=True)
    with tempfile.TemporaryDirectory() as folder:
        workload.prepare(options, Path(folder))

        def measure(name):
            line.show(f"{name} ...")
            own = "-m", "keras_gmlp.benchmark", *arguments, "--candidate", name, "--folder", folder
            candidate = candidates[name]
            output, reason = run_python(candidate.script or own, candidate.environment)
            if reason:
                raise RuntimeError(reason)
            return json.loads(output.splitlines()[-1])

        found, failed = take_turns(list(candidates), options.rounds, measure)
    line.clear()
    for name, reason in failed.items():
        print(f"{name} failed: {reason}", file=sys.stderr)
    if not any(found.values()):
        return 1
    threads = os.environ.get("OMP_NUM_THREADS", "all")
    versions = (f"{name} {of}" for name, of in installed_versions(workload.versions).items())
    print(f"{processor()}, {threads} threads. {', '.join(versions)}.")
    print(f"Measured with `python -m keras_gmlp.benchmark {' '.join(arguments)}`.\n")
    references = {name: candidate.reference for name, candidate in candidates.items()}
    print(*to_table(found, references, workload.unit, workload.compared), sep="\n")
    return 1 if failed else 0


def run_python(arguments, environment):
    """Returns what Python prints with these arguments, and why it failed or `None`."""
    command = [sys.executable, *map(str, arguments)]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **environment}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    failed = result.returncode
    return result.stdout, why_ended(failed, result.stderr) if failed else None


def take_turns(names, rounds, measure):
    """Returns the measurements of each candidate, and why the others failed."""
    found, failed = {name: [] for name in names}, {}
    for number in range(rounds):
        for name in reversed(names) if number % 2 else names:
            if name in failed:
                continue
            try:
                found[name].append(measure(name))
            except RuntimeError as error:
                failed[name] = str(error)
                del found[name]
    return found, failed


def to_table(found, references, unit, compared):
    """Returns the lines of a Markdown table of the medians and the ratios."""
    rows = {}
    for name, measured in found.items():
        rows[name] = {key: statistics.median(m[key] for m in measured) for key in measured[0]}
        reference = found.get(references[name])
        if compared and len(found) > 1 and reference:
            pairs = zip(measured, reference, strict=True)
            rows[name]["ratio"] = statistics.median(m[compared] / r[compared] for m, r in pairs)
    shown = {key: of for key, of in FIGURES.items() if any(key in row for row in rows.values())}
    lines = []
    for name, row in rows.items():
        cells = (form.format(row[key]) if key in row else "" for key, (_, form) in shown.items())
        lines.append([name, *cells])
    head = ["", *(title.format(unit=unit) for title, _ in shown.values())]
    return make_table(head, lines, range(1, len(head)))


def time_calls(call, calls, units, untimed=1):
    """Returns the units per second of the median call."""
    seconds = []
    for _ in range(untimed + calls):
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    return {"clock": units / statistics.median(seconds[untimed:])}


def time_batches(batches, count, timed=None, untimed=0):
    """Returns the units per second of an iterator; `count` gives the units of a batch."""
    for _ in itertools.islice(batches, untimed):
        pass
    units, clock, cpu = 0, time.perf_counter(), _processor_time()
    for batch in itertools.islice(batches, timed):
        units += count(batch)
    clock, cpu = time.perf_counter() - clock, _processor_time() - cpu
    return {"clock": units / clock, "processor": units / cpu}


def _processor_time():
    """Returns seconds of this process and of its children that ended."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system
