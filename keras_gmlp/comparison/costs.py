"""What a sweep's models cost to run: FLOPs and latency, by preset."""

import contextlib
import shutil
import tempfile
from pathlib import Path

from keras_gmlp import inference
from keras_gmlp.card import read_card
from keras_gmlp.comparison.flops import count_flops, random_model
from keras_gmlp.export.verify import export_run, measure_latencies
from keras_gmlp.training.recipes import PATCH_OPTIONS
from keras_gmlp.utils.files import read_json, write_json


def measure_costs(runs, report=lambda text: None, repeats=200):
    """FLOPs of each preset, and the latency of its 8-bit TFLite file, measured in turns.

    Args:
        runs: complete runs; of each preset the first with the whole training set is measured.
        report: called with a line of text where a model does not export or cannot be counted.
        repeats: times that each file classifies one image, on one thread.

    Returns:
        For each preset a dict with `flops` (with PyTorch installed) and the median `latency_ms`.
    """
    first = {}
    for run in sorted(runs, key=lambda run: (-run.fraction, run.seed)):
        first.setdefault(run.preset, run)
    classifiers, found = {}, {}
    for preset, run in first.items():
        record = run.directory / "metrics.json"
        try:
            with _model_folder(run) as directory:
                path = directory / "model.tflite"
                if not path.exists():
                    export_run(directory, ["tflite"])
                classifiers[preset] = inference.load(path, threads=1)
                metrics = read_json(record)  # after an export, which writes there
                if metrics.get("flops") is None:
                    write_json(record, {**metrics, "flops": count_flops(directory / "model.keras")})
        except (ValueError, RuntimeError) as error:
            report(f"{run.name}: {error}")
        metrics = read_json(record)
        found[preset] = {} if metrics.get("flops") is None else {"flops": metrics["flops"]}
    for preset, seconds in measure_latencies(classifiers, repeats=repeats).items():
        found[preset]["latency_ms"] = round(1000 * seconds, 3)
    return found


@contextlib.contextmanager
def _model_folder(run):
    """The run's folder or, where its model was not kept, one with a model that costs the same.

    One with the model alone where its TFLite file is of the folded model.
    """
    kept = run.directory / "model.keras"
    folded = read_card(run.directory / "model.tflite").get("folded")
    if kept.exists() and not folded:
        yield run.directory
        return
    with tempfile.TemporaryDirectory() as scratch:
        if kept.exists():
            shutil.copy(kept, scratch)
        else:
            _stand_in(run).save(Path(scratch) / "model.keras")
        yield Path(scratch)


def _stand_in(run):
    recipe = read_json(run.directory / "recipe.json", {})
    if not {"image_shape", "labels"} <= set(recipe):
        raise ValueError("neither model.keras nor a recipe.json that tells what the model takes.")
    patches = {n: recipe[n] for n in PATCH_OPTIONS if recipe.get(n)}
    shape = tuple(recipe["image_shape"])
    return random_model(run.preset, input_shape=shape, classes=len(recipe["labels"]), **patches)
