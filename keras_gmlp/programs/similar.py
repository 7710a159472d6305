"""Finds the images in a folder that are most similar to another image."""

import json
import os
import sys
from pathlib import Path

from keras_gmlp.programs.shared import cli
from keras_gmlp.utils.errors import printable

EPILOG = """\
The similarity is the cosine between the vectors that the classifier's head gets: 1 for images
that it cannot distinguish. DIR stays as it is.

examples:
  apps/similar.py cat.jpg --data photos/                    with the included gmlp_photo_64
  apps/similar.py cat.jpg --data photos/ --out similar.png  a contact sheet
  apps/similar.py cat.jpg --data photos/ --model runs/gmlp_n4_32-photos --top 20 --json

exit codes: 0 done, 1 an image or the model could not be read, 2 wrong usage,
130 stopped with Ctrl-C
"""


def parse(arguments):
    parser = cli.Parser(description=__doc__, epilog=EPILOG)
    parser.add_argument("query", metavar="QUERY", help="an image file")
    parser.add_argument(
        "--data", required=True, metavar="DIR", help="a folder; its subfolders are searched, too"
    )
    parser.add_argument(
        "--model",
        metavar="MODEL",
        help="the folder of a run, the name of an included model, a .keras file, a .tflite file of "
        "apps/export.py --formats features, or published weights (a file or hf-hub:NAME); default: "
        "the included gmlp_photo_64",
    )
    parser.add_argument(
        "--top",
        type=cli.count,
        default=15,
        metavar="N",
        help="images to find; default: %(default)s",
    )
    parser.add_argument("--out", metavar="FILE", help="PNG file for a contact sheet")
    cli.add_backend(parser)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    options = parser.parse_args(arguments)
    if options.out is not None and not options.out.lower().endswith(".png"):
        parser.error(f"--out must be a .png file; received {options.out!r}")
    if options.out:
        parser.check_output(options.out, options.data, options.query, options.model)
    return options


def main(arguments=None):
    options = parse(arguments)
    return cli.guarded("similar", lambda: run(options))


def run(options):
    # Imported here, so that --help is fast.
    from keras_gmlp.data.images.read_image import find_images
    from keras_gmlp.inference.similarity import find_similar

    paths = find_images(options.data)
    errors = []
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # without TensorFlow's notes
    classifier = cli.load_classifier(options.model, features=True)
    pairs = find_similar(classifier, options.query, paths, options.top, errors.append)
    for error in errors:
        print(f"similar: {cli.one_line(error)}", file=sys.stderr)
    if options.out:
        from keras_gmlp.inspection.plots import draw_similar

        draw_similar(options.query, pairs, Path(options.out))
    if options.json:
        found = [{"file": str(p), "similarity": round(value, 6)} for p, value in pairs]
        print(json.dumps({"query": options.query, "similar": found}))
    else:
        show(pairs, options.out)
    return 1 if errors else 0


def show(pairs, out):
    for path, similarity in pairs:
        print(f"{similarity:6.3f}  {printable(path)}")
    if out:
        print(f"to      {out}")
