"""Converts published weights into a Keras model, or a trained model into a file for timm."""

import dataclasses
import json
import os
import sys
from pathlib import Path

from keras_gmlp.models.presets import lookup
from keras_gmlp.programs.shared import cli

EPILOG = """\
examples:
  apps/convert.py hf-hub:timm/gmlp_s16_224.ra3_in1k               from the Hugging Face hub
  apps/convert.py mixer.npz --preset mixer_b16_224 --out runs/mixer
  apps/convert.py runs/mixer --image-size 160                     weights over tokens are resized
  apps/convert.py runs/mixer --out mixer/model.safetensors        back, under timm's names

The folder receives model.keras with class names and preprocessing. Classify with it
(apps/classify.py --model FOLDER) or train it further (apps/train.py --weights FOLDER).
exit codes: 0 done, 1 failure, 2 wrong usage, 130 stopped with Ctrl-C
"""


def parse(arguments):
    parser = cli.Parser(description=__doc__, epilog=EPILOG)
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="hf-hub:NAME[@REVISION], a .safetensors, .pth, .pt, .bin or .npz file, a .keras file, "
        "the folder of a run or the name of an included model",
    )
    parser.add_argument("--preset", help="default: the name in the source")
    parser.add_argument(
        "--out",
        metavar="FOLDER|FILE",
        help="default: runs/NAME of the source; existing files are never overwritten",
    )
    parser.add_argument(
        "--image-size",
        type=cli.image_size,
        metavar="PIXELS|HxW",
        help="side, or height and width; default: the source's",
    )
    parser.add_argument("--json", action="store_true", help="print a summary as JSON")
    return parser.parse_args(arguments)


def main(arguments=None):
    options = parse(arguments)
    return cli.guarded("convert", lambda: run(options))


def run(options):
    summary = convert(options)
    if options.json:
        print(json.dumps(summary))
        return 0
    print(f"model  {summary['preset']}, {summary['parameters']:,} parameters, {summary['weights']}")
    height, width, channels = summary["image_shape"]
    print(f"takes  images of {height} x {width} x {channels}, {summary['classes']} classes")
    print(f"to     {summary['path']}")
    return 0


def convert(options):
    """Loads the source, resizes it if asked, writes the file; returns a summary, a dict."""
    if options.preset is not None:
        lookup(options.preset)
    if os.environ.get("KERAS_BACKEND", "tensorflow") == "tensorflow":
        cli.import_tensorflow()
    from keras_gmlp.weights import pretrained
    from keras_gmlp.weights.files import short_name

    size = options.image_size and cli.both_sides(options.image_size)
    at_size = f"_{'x'.join(map(str, dict.fromkeys(size)))}px" if size else ""
    path = Path(options.out or f"runs/{short_name(options.source)}{at_size}")
    if path.suffix in (".pth", ".pt", ".npz", ".bin", ".tflite", ".onnx"):
        raise ValueError(f"{path}: expected a folder, a .keras or a .safetensors file to write.")
    if path.suffix == ".safetensors":
        if path.exists():
            raise ValueError(f"{path}: exists; give another --out.")
    else:
        path = path if path.suffix == ".keras" else path / "model.keras"
        if path.exists() or path.with_name("recipe.json").exists():
            raise ValueError(f"{path.parent}: holds a model already; give another --out.")
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
            warn(f"{decision} belong to the former image size; {again} to fit them to this one.")
    if path.suffix == ".safetensors":
        source.save_published(path)
        if source.decision:
            warn(f"{path}: a published file does not hold the {decision} of {options.source}.")
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


def warn(text):
    print(f"convert: {text}", file=sys.stderr, flush=True)
