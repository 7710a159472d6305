"""Exports a trained model to files for deployment, and checks each on test images."""

import functools
import os

from keras_gmlp.programs.shared import cli
from keras_gmlp.utils.sources import FORMATS

USAGE = """\
run RUN  folder of a run, or the name of an included model
--formats FORMAT+  default: all whose requirements are installed, without features and mediapipe
--data NAME|FOLDER|FILE  data set for the checks; default: the run's. Of a language model, a text
    file
--data-dir
--fold  of a ResMLP: first fold Affine and LayerScale
--no-check  skip the checks, which require the data; no int8; removes the recorded checks of the
    files that are replaced
--json  print the results of the checks as JSON

formats:
  tflite           8-bit weights, float activations: smallest, usually fastest (model.tflite)
  tflite_float16   half the size of float32, same speed (model_float16.tflite)
  tflite_float32   32-bit weights and activations (model_float32.tflite)
  tflite_int8      integers everywhere, uint8 pixels, for devices without floats (model_int8.tflite)
  features         tflite with a second signature, from the image to the vector before the head or
                   from the text to its vector, for apps/similar.py; not written by default
                   (model_features.tflite)
  mediapipe        for MediaPipe Tasks and ML Kit: tflite with TFLite Metadata, from an RGB image
                   to probabilities; not written by default (model_mediapipe.tflite)
  saved_model      for TensorFlow Serving: float or uint8 pixels, JPEG or PNG files (saved_model/)
  onnx             for ONNX Runtime, any batch size; requires pip install -e '.[onnx]' (model.onnx)
a text model has the formats tflite, tflite_float16, tflite_float32 and features, with its tokenizer

examples:
  apps/export.py gmlp_n4_32-cifar10                        an included model
  apps/export.py runs/gmlp_n4_32-digits --formats tflite saved_model
  apps/export.py runs/gmlp_n4_32-cifar10 --formats mediapipe
  apps/export.py runs/gmlp_nano-sst2                        a text classifier
  apps/export.py runs/gmlp_nano-text --data held_out.txt    a language model

exit codes: 0 done, 1 failure, 2 wrong usage, 130 stopped with Ctrl-C; complete files are kept
"""


def run(options):
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    cli.import_tensorflow()
    from keras_gmlp.export.verify import export_run, load_check_data

    report = (lambda text: None) if options.json else functools.partial(print, flush=True)
    data = None if options.no_check else load_check_data(options.run, options.data)
    found = export_run(options.run, options.formats, data, report, folded=options.fold)
    cli.show_result(options, found)


main = cli.Program("export", __doc__, USAGE, run, formats={"choices": FORMATS})
