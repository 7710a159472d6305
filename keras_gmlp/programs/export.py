"""Exports a trained model to files for deployment, and checks each on test images."""

import json
import os
import sys
from pathlib import Path

from keras_gmlp.programs.shared.cli import Parser, add_data_dir, guarded, import_tensorflow

FORMATS = (
    "tflite",
    "tflite_float16",
    "tflite_float32",
    "tflite_int8",
    "features",
    "mediapipe",
    "saved_model",
    "onnx",
)

EPILOG = """\
formats:
  tflite           8-bit weights, float activations: smallest, usually fastest (model.tflite)
  tflite_float16   half the size of float32, same speed (model_float16.tflite)
  tflite_float32   32-bit weights and activations (model_float32.tflite)
  tflite_int8      integers everywhere, uint8 pixels, for devices without floats (model_int8.tflite)
  features         tflite with a second signature, from the image to the vector before the head, for
                   apps/similar.py; not written by default (model_features.tflite)
  mediapipe        for MediaPipe Tasks and ML Kit: tflite with TFLite Metadata, from an RGB image
                   to probabilities; not written by default (model_mediapipe.tflite)
  saved_model      for TensorFlow Serving: float or uint8 pixels, JPEG or PNG files (saved_model/)
  onnx             for ONNX Runtime, any batch size; requires pip install -e '.[onnx]' (model.onnx)
a text model has the formats tflite, tflite_float16 and tflite_float32, with its tokenizer

examples:
  apps/export.py gmlp_n4_32-cifar10                        an included model
  apps/export.py runs/gmlp_n4_32-digits --formats tflite saved_model
  apps/export.py runs/gmlp_n4_32-cifar10 --formats mediapipe
  apps/export.py runs/gmlp_nano-sst2                        a text classifier
  apps/export.py runs/gmlp_nano-text --data held_out.txt    a language model

exit codes: 0 done, 1 failure, 2 wrong usage, 130 stopped with Ctrl-C; complete files are kept
"""


def parse(arguments):
    parser = Parser(description=__doc__, epilog=EPILOG)
    parser.add_argument(
        "run", metavar="RUN", help="folder of a run, or the name of an included model"
    )
    parser.add_argument(
        "--formats",
        nargs="+",
        choices=FORMATS,
        metavar="FORMAT",
        help="default: all whose requirements are installed, without features and mediapipe",
    )
    parser.add_argument(
        "--data",
        metavar="NAME|FOLDER|FILE",
        help="data set for the checks; default: the run's. Of a language model, a text file or the "
        "folder of a prepared corpus",
    )
    add_data_dir(parser)
    parser.add_argument(
        "--fold", action="store_true", help="of a ResMLP: first fold Affine and LayerScale"
    )
    parser.add_argument(
        "--batch",
        type=int,
        default=1,
        metavar="N",
        help="images per call of a TFLite file; part of its name above one; features and "
        "mediapipe take one; default: 1",
    )
    parser.add_argument(
        "--no-check",
        action="store_true",
        help="skip the checks, which require the data; no int8; removes the recorded checks of the "
        "files that are replaced",
    )
    parser.add_argument(
        "--json", action="store_true", help="print the results of the checks as JSON"
    )
    options = parser.parse_args(arguments)
    if options.batch < 1:
        parser.error(f"--batch must be at least 1; received {options.batch}")
    if options.no_check and "tflite_int8" in (options.formats or ()):
        parser.error("tflite_int8 requires data for its calibration; leave out --no-check")
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    return options


def main(arguments=None):
    options = parse(arguments)
    return guarded("export", lambda: run(options))


def run(options):
    results = export(options)
    if options.json:
        print(json.dumps(results))
    return 0


def export(options):
    """Exports and checks; returns the results of the checks, a dict."""
    import_tensorflow()
    from keras_gmlp.data.datasets import load_recorded
    from keras_gmlp.export.verify import export_run
    from keras_gmlp.inference import images as inference
    from keras_gmlp.models import saved as saving
    from keras_gmlp.utils.card import read_card
    from keras_gmlp.utils.files import read_json
    from keras_gmlp.utils.shipped import find_shipped

    directory = Path(find_shipped(options.run))
    model = saving.model_path(directory)
    recipe = read_json(directory / "recipe.json", {})
    report = (lambda text: None) if options.json else lambda text: print(text, flush=True)
    if read_card(model).get("task"):
        return export_text_model(options, directory, recipe, report)
    dataset = None
    if not options.no_check:
        shape = recipe.get("image_shape") or inference.load(model).image_shape
        name = options.data or recipe.get("data") or read_card(model).get("data")
        if not name:
            raise ValueError(
                f"{model}: the data set for the checks is unknown; give --data or --no-check."
            )
        fit = read_card(model).get("fit", "crop")
        dataset = load_recorded(recipe, shape, name, options.data_dir, fit)
    return export_run(
        directory,
        options.formats,
        dataset,
        report,
        folded=options.fold,
        tflite_batch=options.batch,
    )


def export_text_model(options, directory, recipe, report):
    from keras_gmlp.export.verify_text import export_text_run, load_check_texts
    from keras_gmlp.inference import text as text_inference

    if options.fold or options.batch != 1:
        raise ValueError(f"{directory}: a text model; --fold and --batch are for images.")
    texts = truth = None
    if not options.no_check:
        source = text_inference.load(directory / "model.keras")
        name = options.data
        if name is None and source.task != "masked_lm":
            name = recipe.get("data")
        if not name:
            raise ValueError(
                f"{directory}: give --data FILE, a text to check the files with, or --no-check."
            )
        columns = {} if options.data else recipe.get("columns")
        texts, truth = load_check_texts(source, name, columns, options.data_dir)
    return export_text_run(directory, options.formats, texts, truth, report)


if __name__ == "__main__":
    sys.exit(main())
