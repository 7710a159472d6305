#!/usr/bin/env python3
"""Measures how fast a model runs: Keras, its exports, and timm's model, beside one another."""

import argparse
import json
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

from cli import guarded, import_tensorflow

DEFAULT = Path(__file__).resolve().parent.parent / "saved_models" / "gmlp_n4_32-cifar10"
TIMM_WORKER = Path(__file__).resolve().parent / "timm_worker.py"
BATCHES, THREADS = (1, 64), (1, 2)
EPILOG = """\
candidates, each with every number of --threads, in a process of its own, on the CPU:
  keras-tensorflow, keras-jax, keras-torch   model.predict_on_batch, which compiles with XLA under
                    TensorFlow and JAX and runs as it is under PyTorch
  saved_model, tflite, tflite_float16, ...   the files of apps/export.py; a TFLite file takes one
                    image at a time, so a batch is a loop over it
  timm, timm-compiled   timm's model as it is and under torch.compile, where timm has the preset
and matrix products of NumPy and PyTorch, which tell what the machine can do.

examples:
  apps/benchmark.py                                    the gMLP in saved_models/
  apps/benchmark.py runs/gmlp_n4_32-digits --quick     a first look
  apps/benchmark.py gmlp_s16_224 mixer_s16_224         presets, with random weights
  apps/benchmark.py gmlp_s16_224 --only tflite_float32 timm --threads 2 --batch 1
  apps/benchmark.py --out docs                         for the record, on an idle machine

All candidates of a model are alive at once and take turns; those that wait sleep. A process takes
0.1 GB (TFLite) to 0.9 GB (TensorFlow): all of the default model need 5 GB, those of a model for 224
pixels and batch 64 some 20 GB. Where less is free (Linux tells) they are measured in groups.
Writes OUT/benchmark.csv, OUT/benchmark.md and OUT/benchmark.png. A candidate that fails is a row
that says why. Exports that a run's folder lacks are made in a temporary folder.
exit codes: 0 done, 1 failure or no candidate measured, 2 wrong usage, 130 stopped with Ctrl-C
"""


def parse(arguments):
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "models",
        nargs="*",
        default=[str(DEFAULT)],
        metavar="MODEL",
        help=f"a run's folder or a preset; default: {DEFAULT.name}",
    )
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", help="candidates, of those below; default: all"
    )
    parser.add_argument(
        "--batch", type=int, nargs="+", default=BATCHES, metavar="N", help="default: 1 64"
    )
    parser.add_argument(
        "--threads", type=int, nargs="+", default=THREADS, metavar="N", help="default: 1 2"
    )
    parser.add_argument("--rounds", type=int, help="bursts of each; default: 10")
    parser.add_argument("--quick", action="store_true", help="3 short rounds")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("runs/benchmark"),
        metavar="DIR",
        help="default: %(default)s",
    )
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    options = parser.parse_args(arguments)
    options.rounds = options.rounds if options.rounds is not None else 3 if options.quick else 10
    for name in ("rounds", "batch", "threads"):
        given = getattr(options, name)
        least = given if name == "rounds" else min(given)
        if least < 1:
            parser.error(f"--{name} must be at least 1; received {least}")
    options.batch, options.threads = sorted(set(options.batch)), sorted(set(options.threads))
    options.command = " ".join(["apps/benchmark.py", *map(shlex.quote, arguments)])
    return parser, options


def main(arguments=None):
    parser, options = parse(arguments)
    return guarded("benchmark", lambda: benchmark(parser, options))


def benchmark(parser, options):
    """Checks the usage, measures, reports; the exit code."""
    import_tensorflow()
    try:
        check(options)
    except ValueError as error:
        parser.error(str(error))
    options.out.mkdir(parents=True, exist_ok=True)
    from keras_gmlp.utils.progress import StatusLine

    progress = StatusLine(log=True)
    try:
        with tempfile.TemporaryDirectory() as scratch:
            found = [run(source, options, scratch, progress) for source in options.models]
        return report(options, found, progress)
    finally:
        progress.clear()


def check(options):
    """Raises a ValueError for wrong usage, before anything is measured."""
    import matplotlib.figure  # noqa: F401 (or the chart would fail in the end)

    from keras_gmlp.benchmark import files
    from keras_gmlp.benchmark.candidates import names
    from keras_gmlp.export.formats import FORMATS

    options.models = list(dict.fromkeys(options.models))
    for source in options.models:
        files.check(source)
    stems = [Path(source).resolve().name for source in options.models]
    if len(set(stems)) < len(stems):
        raise ValueError(f"two models of one name would share their rows: {', '.join(stems)}")
    unknown = [name for name in options.only or () if name not in names(FORMATS)]
    if unknown:
        raise ValueError(
            f"no such candidates: {', '.join(unknown)}. There are: {', '.join(names(FORMATS))}."
        )
    options.formats = [name for name in FORMATS if not options.only or name in options.only]


def run(source, options, scratch, progress):
    """One model's facts and rows."""
    from keras_gmlp.benchmark import candidates, files, measuring
    from keras_gmlp.benchmark.client import Worker
    from keras_gmlp.benchmark.report import to_rows

    folder = Path(tempfile.mkdtemp(dir=scratch))
    progress.show(f"{source}: exporting what is missing")
    model = files.prepare(source, folder, options.formats)
    plan = measuring.Schedule(options.rounds, 0.1 if options.quick else 0.3)
    ways = candidates.candidates(model, options.threads, options.batch, options.only)
    results, others = measuring.measure(
        ways,
        plan,
        lambda candidate: Worker(candidate, folder, program_of(candidate)),
        lambda text: progress.show(f"{model.name}: {text}"),
    )
    shutil.rmtree(folder)
    return model, to_rows(model, results, others)


def program_of(candidate):
    from keras_gmlp.benchmark.candidates import TIMM
    from keras_gmlp.benchmark.client import PROGRAM

    return (TIMM_WORKER,) if candidate.name in TIMM else PROGRAM


def report(options, found, progress):
    """Writes the files and prints the table; the exit code."""
    from keras_gmlp.benchmark import charts, markdown
    from keras_gmlp.benchmark.candidates import REFERENCES
    from keras_gmlp.benchmark.report import write_csv
    from keras_gmlp.utils.files import atomic_write

    rows = [row for _, of_model in found for row in of_model]
    text = markdown.to_markdown([model for model, _ in found], rows, options.command)
    write_csv(rows, options.out / "benchmark.csv")
    with atomic_write(options.out / "benchmark.md") as temporary:
        temporary.write_text(text)
    measured = [r for r in rows if r["status"] == "measured" and r["candidate"] not in REFERENCES]
    if measured:
        charts.draw_bars(measured, options.out / "benchmark.png")
    progress.clear()
    print(json.dumps(rows) if options.json else text)
    for model, of_model in found:
        if of_model[0]["busy"] == "yes":
            progress.say(f"benchmark: warning: {model.name}: {markdown.busy_line(of_model[0])}")
    return 0 if measured else 1


if __name__ == "__main__":
    sys.exit(main())
