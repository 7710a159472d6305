"""Exports a trained model to files for deployment, and checks each on test images."""

import json
import os
from pathlib import Path

from keras_gmlp.export.names import FORMATS
from keras_gmlp.programs.shared.cli import Parser, add_data_dir, count, guarded, import_tensorflow

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
        type=count,
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
    from keras_gmlp.export.verify import export_run, load_check_data
    from keras_gmlp.utils.shipped import find_shipped

    directory = Path(find_shipped(options.run))
    report = (lambda text: None) if options.json else lambda text: print(text, flush=True)
    data = None
    if not options.no_check:
        data = load_check_data(directory, options.data)
    return export_run(
        directory,
        options.formats,
        data,
        report,
        folded=options.fold,
        tflite_batch=options.batch,
    )
