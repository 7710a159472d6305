"""Measures next to other packages, older versions or other ways, as a Markdown table.

    python -m keras_gmlp.benchmark training --timm --backends torch
    python -m keras_gmlp.benchmark text --presets bert_nano gmlp_nano amlp_nano
    python -m keras_gmlp.benchmark device gmlp_n4_32 gmlp_ti4_32 gmlp_s16_224
    python -m keras_gmlp.benchmark masking
    python -m keras_gmlp.benchmark augmentation
    python -m keras_gmlp.benchmark reading --images 200000 --batches 60
    python -m keras_gmlp.benchmark own_images photos/

`python -m keras_gmlp.benchmark NAME --help` explains one of them. OMP_NUM_THREADS limits threads.
"""

import argparse
import inspect
import sys
from pathlib import Path

from keras_gmlp.benchmark import harness
from keras_gmlp.benchmark.accuracy import OwnImages
from keras_gmlp.benchmark.input_speed import AugmentationSpeed, MaskingSpeed, ReadingSpeed
from keras_gmlp.benchmark.training_speed import DeviceSpeed, TextSpeed, TrainingSpeed
from keras_gmlp.utils.errors import OneLineParser

WORKLOADS = (
    *(TrainingSpeed(), TextSpeed(), DeviceSpeed()),
    *(MaskingSpeed(), AugmentationSpeed(), ReadingSpeed(), OwnImages()),
)
ROUNDS = {"--rounds": (3, "of all candidates")}


def describe(default, text):
    """Returns the arguments of `add_argument` for an option with a default."""
    several = isinstance(default, list)
    shown = " ".join(map(str, default)) if several else default
    kind = {"type": type(default[0]), "nargs": "+"} if several else {"type": type(default)}
    return {**kind, "default": default, "help": f"{text}; default: {shown}"}


def main(arguments=None):
    arguments = sys.argv[1:] if arguments is None else arguments
    parser = OneLineParser(prog="python -m keras_gmlp.benchmark", description=__doc__)
    commands = parser.add_subparsers(dest="name", metavar="NAME", required=True)
    for workload in WORKLOADS:
        text = inspect.getdoc(workload)
        first = text.splitlines()[0]
        own = commands.add_parser(workload.name, help=first, description=text)
        for name, given in {**ROUNDS, **workload.options}.items():
            own.add_argument(name, **(given if isinstance(given, dict) else describe(*given)))
        own.add_argument("--candidate", help=argparse.SUPPRESS)
        own.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
        own.set_defaults(workload=workload, parser=own)
    options, rest = parser.parse_known_args(arguments)
    if rest:  # the top parser, which would refuse them, does not know the nearest options
        options.parser.error(f"unrecognized arguments: {' '.join(rest)}")
    for name, value in vars(options).items():
        if type(value) is int and value < 1 and name != "seed":
            options.parser.error(f"--{name} must be at least 1; received {value}")
    try:
        options.workload.check(options)
    except ValueError as error:
        options.parser.error(str(error))
    return harness.run(options.workload, options, arguments)


if __name__ == "__main__":
    sys.exit(main())
