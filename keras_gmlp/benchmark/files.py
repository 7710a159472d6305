"""Prepares the files of a model to measure; a separate process exports what is missing.

So the memory for conversion is free again before the measurement, and a converter that crashes
does not end the benchmark.
"""

import contextlib
import dataclasses
import json
import sys
from pathlib import Path

import numpy as np

from keras_gmlp.benchmark.harness import run_python
from keras_gmlp.models import presets
from keras_gmlp.models.saved import model_path
from keras_gmlp.utils.errors import first_line
from keras_gmlp.utils.export_formats import DEFAULT_FORMATS, FORMATS
from keras_gmlp.utils.files import read_json
from keras_gmlp.utils.shipped import find_shipped, suggest_shipped

IN_TIMM = ("gMLP", "MLPMixer", "ResMLP", "ViT")  # at 224 pixels

CALIBRATION = 4  # images


@dataclasses.dataclass
class Model:
    """A model and its files."""

    name: str  # in the table
    keras: Path  # of the `.keras` file
    shape: tuple[int, int, int]  # (height, width, channels)
    classes: int
    parameters: int
    flops: int | None  # per image
    architecture: str | None  # name in timm
    files: dict = dataclasses.field(default_factory=dict)  # paths of exports, by format
    errors: dict = dataclasses.field(default_factory=dict)  # why an export is missing, by format


def check_source(source):
    """Raises a one-line `ValueError` unless the source is a run's folder or name, or a preset."""
    if source in presets.IMAGE_PRESETS:
        return
    source = str(find_shipped(source))
    if Path(source).is_dir():
        model_path(source)
        return
    try:
        presets.lookup(source)
    except ValueError as error:
        raise ValueError(f"{source}: no such folder. {error}{suggest_shipped(source)}") from None


def prepare(source, scratch, formats=DEFAULT_FORMATS):
    """Prepares a model and its exports."""
    source = source if source in presets.IMAGE_PRESETS else find_shipped(source)
    model, waiting = None, list(formats)
    while model is None or waiting:
        command = ["-m", "keras_gmlp.benchmark.files", source, scratch, *waiting]
        output, reason = run_python(command, {"KERAS_BACKEND": "tensorflow"})
        lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
        if not lines:
            raise ValueError(f"{source}: {reason}")
        description, *exports = lines
        model = model or Model(**description)
        for line in exports:
            waiting.remove(line["format"])
            if "error" in line:
                model.errors[line["format"]] = line["error"]
            else:
                model.files[line["format"]] = Path(line["path"])
        if waiting:  # the process crashed at the first of them
            model.errors[waiting.pop(0)] = f"exporting: {reason}"
    return model


def timm_architecture(preset):
    """Returns timm's name of a preset, or `None` if timm does not have it."""
    if preset not in presets.IMAGE_PRESETS or not preset.endswith("_224"):
        return None
    from keras_gmlp.weights.names import ARCHITECTURES

    names = {preset: name for name, preset in ARCHITECTURES.items()}
    family, _ = presets.lookup(preset)
    return names.get(preset, preset) if family.__name__ in IN_TIMM else None


def _main(source, scratch, *formats):
    """Prints the arguments of a `Model` as JSON, then a line for each format."""
    from keras_gmlp.evaluation.flops import count_flops, random_model
    from keras_gmlp.export.formats import export
    from keras_gmlp.inference import images as inference
    from keras_gmlp.models.precision import in_float32
    from keras_gmlp.utils.card import read_card

    run = Path(source) if Path(source).is_dir() else None
    if run:
        path = run / "model.keras"
        model = in_float32(inference.load(path).model)
        recipe, metrics = (read_json(run / f"{n}.json", {}) for n in ("recipe", "metrics"))
        preset = recipe.get("preset") or read_card(path).get("preset") or model.name
    else:
        path, preset, metrics = Path(scratch) / "model.keras", source, {}
        model = random_model(preset)
        model.save(path)
    flops = metrics.get("flops")
    if not flops:
        with contextlib.suppress(ValueError):  # the report leaves them out
            flops = count_flops(path)
    description = {
        "name": run.resolve().name if run else preset,
        "keras": str(path),
        "shape": model.input_shape[1:],
        "classes": model.output_shape[-1],
        "parameters": model.count_params(),
        "flops": flops,
        "architecture": timm_architecture(preset),
    }
    print(json.dumps(description), flush=True)
    # Noise will do: the ranges of the integers do not change their speed.
    shape = (CALIBRATION, *model.input_shape[1:])
    noise = np.random.default_rng(0).integers(0, 256, shape, "uint8")
    for name in formats:
        exported = run and run / FORMATS[name]
        found = {"path": str(exported)}
        if not exported or not exported.exists():
            try:
                found = {"path": str(export(model, scratch, [name], calibration=noise)[name])}
            except (ValueError, RuntimeError, ImportError) as error:
                found = {"error": first_line(error)}
        print(json.dumps({"format": name, **found}), flush=True)


if __name__ == "__main__":
    try:
        _main(*sys.argv[1:])
    except (ValueError, OSError) as error:
        sys.exit(first_line(error))
