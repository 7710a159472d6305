"""Measures how fast a model runs in Keras, as an export, and in timm."""

import shlex
import shutil
import tempfile
from pathlib import Path

from keras_gmlp.programs.shared import cli

DEFAULT = Path(__file__).resolve().parents[2] / "saved_models" / "gmlp_conv_n4_32-cifar10"

BATCHES, THREADS = (1, 64), (1, 2)

USAGE = """\
models MODEL*  a run's folder, the name of an included model, or a preset, which gets random
    weights; default: gmlp_conv_n4_32-cifar10
--only NAME+  candidates to measure, see below; default: all
--batch N:count+  batch sizes; default: 1 64
--threads N:count+  numbers of threads; default: 1 2
--rounds ROUNDS:count  bursts per candidate; default: 10
--quick  measure 3 short rounds
--out DIR=runs/benchmark  output folder
--json  print the rows as JSON

candidates, each in its own process on the CPU, once per number of --threads:
  keras-tensorflow, keras-jax   model.predict_on_batch, which XLA compiles
  keras-torch       the logits of keras_gmlp.inference, which replays PyTorch's operators
  saved_model, tflite, tflite_float16, ...   the files of apps/export.py; a TFLite file takes one
                    image at a time, so a batch is a loop
  openvino, openvino-bfloat16   model.onnx in OpenVINO; a batch is a request for each thread.
                    bfloat16 requires a processor with it
  timm, timm-compiled   timm's model, eager and with torch.compile, if timm has the preset
Matrix products of NumPy and PyTorch show what the machine can do.

examples:
  apps/benchmark.py                                    the gMLP in saved_models/
  apps/benchmark.py runs/gmlp_n4_32-digits --quick     3 short rounds
  apps/benchmark.py gmlp_s16_224 mixer_s16_224         presets, with random weights
  apps/benchmark.py gmlp_s16_224 --only tflite_float32 timm --threads 2 --batch 1
  apps/benchmark.py --out docs                         the figures of the docs, on an idle machine

All candidates of a model run at once and take turns; the others sleep. A process takes 0.1 GB
(TFLite) to 0.9 GB (TensorFlow). The default model needs 5 GB in all, a model for 224 pixels at
batch 64 about 20 GB. With less free memory (known on Linux), they are measured in groups.
Writes OUT/benchmark.csv, OUT/benchmark.md and OUT/benchmark.png. A failed candidate is a row with
its reason. Exports missing from a run's folder go to a temporary folder.
exit codes: 0 done, 1 failure or no candidate measured, 2 wrong usage, 130 stopped with Ctrl-C
"""


def benchmark(options):
    """Checks the options, measures and reports; returns the exit code."""
    with cli.usage_errors():
        check(options)
    options.rounds = options.rounds or (3 if options.quick else 10)
    options.batch, options.threads = sorted(set(options.batch)), sorted(set(options.threads))
    options.command = shlex.join(["apps/benchmark.py", *options.given])
    cli.import_tensorflow()
    import matplotlib.figure  # noqa: F401 (a missing one would fail at the end)

    options.out.mkdir(parents=True, exist_ok=True)
    from keras_gmlp.utils.progress import StatusLine

    progress = StatusLine(log=True)
    try:
        with tempfile.TemporaryDirectory() as scratch:
            measured = [run(source, options, scratch, progress) for source in options.models]
        return report(options, measured, progress)
    finally:
        progress.clear()


def check(options):
    """Raises a ValueError for wrong options, before anything is measured."""
    from keras_gmlp.benchmark import files
    from keras_gmlp.benchmark.runtimes import NAMES, required_formats
    from keras_gmlp.utils.shipped import find_shipped

    options.models = list(dict.fromkeys(str(find_shipped(source)) for source in options.models))
    for source in options.models:
        files.check_source(source)
    stems = [Path(source).resolve().name for source in options.models]
    if len(set(stems)) < len(stems):
        raise ValueError(f"expected models with different names; received {', '.join(stems)}")
    unknown = [name for name in options.only or () if name not in NAMES]
    if unknown:
        raise ValueError(
            f"unknown candidates: {', '.join(unknown)}; expected some of {', '.join(NAMES)}."
        )
    options.formats = required_formats(options.only)


def run(source, options, scratch, progress):
    """Measures one model; returns it and its rows."""
    from keras_gmlp.benchmark import files, measuring
    from keras_gmlp.benchmark.report import to_rows
    from keras_gmlp.benchmark.runtimes import list_candidates
    from keras_gmlp.benchmark.worker import Worker

    folder = Path(tempfile.mkdtemp(dir=scratch))
    progress.show(f"{source}: exporting missing files")
    model = files.prepare(source, folder, options.formats)
    chosen = list_candidates(model, options.threads, options.batch, options.only)
    results, others = measuring.measure(
        chosen,
        options.rounds,
        0.1 if options.quick else 0.3,  # seconds of a burst
        lambda candidate: Worker(candidate, folder),
        lambda text: progress.show(f"{model.name}: {text}"),
    )
    shutil.rmtree(folder)
    return model, to_rows(model, results, others)


def report(options, results, progress):
    """Writes the files and prints the table; returns the exit code."""
    from keras_gmlp.benchmark.report import COLUMNS, describe_load, draw_bars, to_markdown
    from keras_gmlp.benchmark.runtimes import NAMES
    from keras_gmlp.utils.csv_tables import write_dicts
    from keras_gmlp.utils.files import atomic_write

    rows = [row for _, of_model in results for row in of_model]
    text = to_markdown([model for model, _ in results], rows, options.command)
    write_dicts(options.out / "benchmark.csv", COLUMNS, rows)
    with atomic_write(options.out / "benchmark.md") as temporary:
        temporary.write_text(text)
    measured = [r for r in rows if r["status"] == "measured" and r["candidate"] in NAMES]
    if measured:
        draw_bars(measured, options.out / "benchmark.png")
    progress.clear()
    cli.show_result(options, rows, lambda rows: print(text))
    for model, of_model in results:
        if of_model[0]["busy"] == "yes":
            progress.say(f"benchmark: warning: {model.name}: {describe_load(of_model[0])}")
    return 0 if measured else 1


SETTINGS = {
    "models": {"default": [str(DEFAULT)]},
    "batch": {"default": BATCHES},
    "threads": {"default": THREADS},
    "out": {"type": Path},
}
main = cli.Program("benchmark", __doc__, USAGE, benchmark, **SETTINGS)
