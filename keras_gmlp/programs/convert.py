"""Converts published weights into a Keras model, or a trained model into files for others."""

import dataclasses
import os
from pathlib import Path

from keras_gmlp.models.presets import lookup
from keras_gmlp.programs.shared import cli
from keras_gmlp.programs.shared.parser import both_sides

USAGE = """\
source SOURCE  hf://NAME[@REVISION], a .safetensors, .pth, .pt, .bin or .npz file, a folder with
    model.safetensors and config.json, a .keras file, the folder of a run or the name of an included
    model; for texts also a folder of transformers with a BERT
--preset PRESET  for images; default: the name in the source
--out FOLDER|FILE  default: runs/NAME of the source; existing files are never overwritten
--image-size PIXELS|HxW:size  side, or height and width, for images; default: the source's
--json  print a summary as JSON

examples:
  apps/convert.py hf://timm/gmlp_s16_224.ra3_in1k               from the Hugging Face hub
  apps/convert.py mixer.npz --preset mixer_b16_224 --out runs/mixer
  apps/convert.py runs/mixer --image-size 160                     weights over tokens are resized
  apps/convert.py runs/mixer --out mixer/model.safetensors        back, under timm's names
  apps/convert.py bert/ --out runs/bert                           a text model of transformers
  apps/convert.py runs/bert --out mine/model.safetensors          back, a folder of transformers

The folder receives model.keras with class names and preprocessing. Classify with it
(apps/classify.py --model FOLDER) or train it further (apps/train.py --weights FOLDER). A text
model gets its tokenizer, too; apps/fill_mask.py and classify.py take it.
"""


def run(options):
    cli.show_result(options, convert(options), show)


def show(summary):
    parameters = f"{summary['parameters']:,} parameters"
    if "task" in summary:
        print(f"model  {summary['name']}, {parameters}, {summary['kind']}")
        classes = f", {len(summary['labels'])} classes" if summary["labels"] else ""
        print(f"takes  texts of up to {summary['length']:,} tokens{classes}")
    else:
        print(f"model  {summary['preset']}, {parameters}, {summary['weights']}")
        size = " x ".join(map(str, summary["image_shape"]))
        print(f"takes  images of {size}, {summary['classes']} classes")
    print(f"to     {summary['path']}")
    if opens := summary.get("opens"):
        print(f"open   transformers.{opens}.from_pretrained({str(Path(summary['path']).parent)!r})")


def convert(options):
    """Loads the source, resizes it if asked, writes the file; returns a summary, a dict."""
    if options.preset is not None:
        lookup(options.preset)
    if os.environ.get("KERAS_BACKEND", "tensorflow") == "tensorflow":
        cli.import_tensorflow()
    from keras_gmlp.utils.sources import TRAINABLE, find_model
    from keras_gmlp.weights.files import short_name
    from keras_gmlp.weights.text_folder import is_text_model

    size = options.image_size and both_sides(options.image_size)
    at_size = f"_{'x'.join(map(str, dict.fromkeys(size)))}px" if size else ""
    path = Path(options.out or f"runs/{short_name(options.source)}{at_size}")
    if path.suffix not in (".keras", ".safetensors"):
        path = path / "model.keras"
    is_run = path.suffix == ".keras" and path.with_name("recipe.json").exists()
    if path.exists() or is_run:
        raise ValueError(f"{path.parent}: holds a model already; give another --out.")
    source, kind = find_model(options.source, TRAINABLE)
    if not is_text_model(source, kind):
        return convert_images(options, size, path)
    if options.preset or size:
        raise ValueError(
            f"{options.source} is a text model; --preset and --image-size are for images."
        )
    return convert_text(options, source, path)


def convert_images(options, size, path):
    """Converts a model for images; returns a summary, a dict."""
    from keras_gmlp.weights import pretrained

    source = pretrained.load(options.source, options.preset)
    weights = "all weights kept"
    decision = " and ".join(source.decision).replace("_", " ")
    if size:
        shape = (*size, source.model.input_shape[-1])
        model, report = source.adapt(input_shape=shape)
        arguments = source.build_arguments(input_shape=shape)
        source = dataclasses.replace(source, model=model, arguments=arguments)
        weights = str(report)
        if source.decision and path.suffix != ".safetensors":
            again = "train at this size" if "thresholds" in source.decision else "calibrate again"
            text = f"{decision} belong to the former image size; {again} to fit them to this one."
            cli.fail(options, text, code=0)
    if path.suffix == ".safetensors":
        source.save_published(path)
        if source.decision:
            text = f"{path}: a published file does not hold the {decision} of {options.source}."
            cli.fail(options, text, code=0)
    else:
        source.save(path)
    return {
        "path": str(path),
        "preset": source.preset,
        "parameters": source.model.count_params(),
        "image_shape": list(source.model.input_shape[1:]),
        "classes": source.model.output_shape[-1],
        "weights": weights,
    }


def convert_text(options, source, path):
    """Converts a model for texts; returns a summary, a dict."""
    from keras_gmlp.tasks.confidence import Confidence
    from keras_gmlp.tasks.registry import find_task
    from keras_gmlp.weights import text_folder
    from keras_gmlp.weights.loading import load

    opened, opens = load(source), None
    if path.suffix == ".safetensors":
        opens = text_folder.write_text_folder(opened, path)
        if opened.confidence != Confidence():
            text = f"{path}: transformers has no temperature; its probabilities are not calibrated."
            cli.fail(options, text, code=0)
    else:
        text_folder.save_text_model(opened, path)
    return {
        "path": str(path),
        "name": opened.model.name,
        "task": opened.task,
        "kind": find_task(opened.task).kind,
        "parameters": opened.model.count_params(),
        "length": opened.length,
        "labels": list(opened.labels),
        "opens": opens,
    }


main = cli.Program("convert", __doc__, USAGE, run)
