"""The costs of a sweep's models, FLOPs and latency by preset."""

import contextlib
import shutil
import tempfile
from pathlib import Path

from keras_gmlp.data.run_folder import Run
from keras_gmlp.evaluation.flops import count_flops
from keras_gmlp.export.verify import export_run
from keras_gmlp.inference.latency import measure_latencies
from keras_gmlp.utils.card import read_card
from keras_gmlp.utils.files import write_json
from keras_gmlp.weights.loading import load


def measure_costs(runs, report=lambda text: None, repeats=200):
    """Counts the FLOPs of each preset and measures its 8-bit TFLite file, all in turns."""
    first = {}
    for run in sorted(runs, key=lambda run: (-run.fraction, run.seed)):
        first.setdefault(run.preset, run)
    classifiers, costs = {}, {}
    for preset, run in first.items():
        try:
            with _folder_as_trained(run.directory) as directory:
                path = directory / "model.tflite"
                if not path.exists():
                    export_run(directory, ["tflite"])
                classifiers[preset] = load(path, threads=1)
                metrics = Run(run.directory).metrics  # after the export, which writes to it
                if metrics.get("flops") is None:
                    metrics["flops"] = count_flops(directory / "model.keras")
                    write_json(run.directory / "metrics.json", metrics)
        except (ValueError, RuntimeError, OSError) as error:
            report(f"{run.name}: {error}")
        flops = Run(run.directory).metrics.get("flops")
        costs[preset] = {} if flops is None else {"flops": flops}
    for preset, seconds in measure_latencies(classifiers, repeats=repeats).items():
        costs[preset]["latency_ms"] = round(1000 * seconds, 3)
    return costs


@contextlib.contextmanager
def _folder_as_trained(directory):
    """Yields a folder of the run's model without an export that folding has made faster."""
    if not read_card(directory / "model.tflite").get("folded"):
        yield directory
        return
    with tempfile.TemporaryDirectory() as scratch:
        shutil.copy(directory / "model.keras", scratch)
        yield Path(scratch)
