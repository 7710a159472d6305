"""Measures candidates in turns, each in a process of its own, and prints a Markdown table.

A round takes one measurement of each candidate, in alternating order, so that other work on the
machine affects all of them. The table has medians over the rounds. *relative* is the median of the
ratios of the first figure to that of a reference in the same round.
"""

import argparse
import contextlib
import csv
import dataclasses
import functools
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import typing
from pathlib import Path

from keras_gmlp.utils.environment import installed_versions, processor
from keras_gmlp.utils.errors import why_ended
from keras_gmlp.utils.tables import make_table

PACKAGES = (
    *("keras", "tensorflow", "tensorflow-cpu", "jax", "torch", "ai-edge-litert", "onnxruntime"),
    *("openvino", "timm", "transformers"),
)


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A way to do the work."""

    name: str
    measure: typing.Callable  # of (options, folder): returns figures by the heads of their columns
    reference: str | None = None  # name of the candidate that it is compared with
    environment: dict = dataclasses.field(default_factory=dict)


def make_parser(module, description):
    """Returns the parser of a benchmark, with the options that all of them have."""
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{module}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--csv", type=Path, metavar="FILE", help="also write the table here")
    return parser


def run(parser, list_candidates, arguments=None, prepare=None):
    """Measures the candidates and prints their table; returns 1 if one of them failed."""
    arguments = sys.argv[1:] if arguments is None else [str(each) for each in arguments]
    parser.add_argument("--rounds", type=int, default=3, help="default: 3")
    parser.add_argument("--here", action="store_true", help="in this process, for errors in full")
    parser.add_argument("--candidate", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    candidates = {each.name: each for each in list_candidates(options)}
    if options.candidate:  # this is its process
        found = candidates[options.candidate].measure(options, options.folder)
        print(json.dumps(found))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        if prepare:
            prepare(options, Path(folder))

        def measure(name):
            print(f"{name} ...", file=sys.stderr)
            candidate = candidates[name]
            if options.here:
                return candidate.measure(options, Path(folder))
            command = [sys.executable, "-m", parser.prog.split()[-1], *arguments]
            command += ["--candidate", name, "--folder", folder]
            environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **candidate.environment}
            ended = subprocess.run(command, env=environment, capture_output=True, text=True)
            if ended.returncode:
                raise RuntimeError(why_ended(ended.returncode, ended.stderr))
            return json.loads(ended.stdout.splitlines()[-1])

        found, failed = take_turns(list(candidates), options.rounds, measure)
    for name, reason in failed.items():
        print(f"{name} failed: {reason}", file=sys.stderr)
    references = {name: candidate.reference for name, candidate in candidates.items()}
    show_table(summarize(found, references), parser, arguments, options.csv)
    return 1 if failed else 0


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


def summarize(found, references):
    """Returns a row for each candidate: a dict of its name, its medians and the ratio."""
    rows = []
    for name, measured in found.items():
        row = {key: statistics.median(each[key] for each in measured) for key in measured[0]}
        reference = found.get(references[name])
        if reference and len(found) > 1:
            pairs = zip(measured, reference, strict=True)
            ratios = [mine[next(iter(mine))] / other[next(iter(other))] for mine, other in pairs]
            row["relative"] = statistics.median(ratios)
        rows.append({"": name, **row})
    return rows


def show_table(rows, parser, arguments, path=None):
    """Prints rows as a table, with the machine and the command, and writes them as CSV."""
    threads = os.environ.get("OMP_NUM_THREADS", "all")
    versions = (f"{name} {of}" for name, of in installed_versions(PACKAGES).items())
    print(f"{processor()}, {os.cpu_count()} cores, {threads} threads. {', '.join(versions)}.")
    print(f"Measured with `{parser.prog} {' '.join(arguments)}`.\n")
    head = list(dict.fromkeys(key for row in rows for key in row))
    lines = [[format_figure(row.get(key, "")) for key in head] for row in rows]
    print(*make_table(head, lines, range(1, len(head))), sep="\n")
    if path:
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([["model", *head[1:]], *lines])


def format_figure(value):
    """Returns a text; no figure here is accurate beyond three digits."""
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def time_calls(call, calls, untimed=1, clock=time.perf_counter):
    """Returns the median seconds of a call."""
    seconds = []
    for _ in range(untimed + calls):
        began = clock()
        call()
        seconds.append(clock() - began)
    return statistics.median(seconds[untimed:])


def timm_gmlp(preset):
    """Returns timm's gMLP of the size of a preset."""
    import_torchvision()
    from timm.layers import GatedMlp
    from timm.models.mlp_mixer import MlpMixer, SpatialGatingBlock

    from keras_gmlp.models.presets import lookup

    size = lookup(preset)[1]
    return MlpMixer(
        num_classes=size["classes"],
        img_size=size["input_shape"][0],
        patch_size=size["patch_size"],
        num_blocks=size["depth"],
        embed_dim=size["dim"],
        mlp_ratio=size["hidden_dim"] / size["dim"],
        block_layer=SpatialGatingBlock,
        mlp_layer=GatedMlp,
    )


def is_in_timm(preset):
    """Returns whether `timm_gmlp` has a preset: a gMLP with a stem of patches."""
    return preset.startswith("gmlp_") and preset.split("_")[1] not in ("conv", "residual")


def import_torchvision():
    """Declares the operators that a torchvision for another build of PyTorch lacks."""
    # Without them its import fails, and so does timm's. They detect objects; classifiers do not.
    with contextlib.suppress(ImportError):  # whoever needs it reports that
        try:
            importlib.import_module("torchvision")
        except RuntimeError:  # operator torchvision::nms does not exist
            library = _torchvision_library()
            names = ("nms", "roi_align", "roi_pool", "ps_roi_align", "ps_roi_pool", "deform_conv2d")
            for name in names:
                for variant in (name, f"_{name}_backward", f"q{name}"):
                    with contextlib.suppress(RuntimeError):  # it exists
                        library.define(f"{variant}() -> ()")
            importlib.import_module("torchvision")


@functools.cache  # its operators live as long as this object
def _torchvision_library():
    import torch

    return torch.library.Library("torchvision", "DEF")
