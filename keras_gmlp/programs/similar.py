"""Finds the images in a folder that are most similar to another image."""

import functools
from pathlib import Path

from keras_gmlp.programs.shared import cli
from keras_gmlp.utils.errors import printable

USAGE = """\
query QUERY  an image file
--data DIR!  a folder; its subfolders are searched, too
--model MODEL  the folder of a run, the name of an included model, a .keras file, a .tflite file of
    apps/export.py --formats features, or published weights (a file or hf-hub:NAME); default: the
    included gmlp_photo_64
--top N:count=15  images to find
--out FILE  PNG file for a contact sheet
--backend
--json  print the result as JSON

The similarity is the cosine between the vectors that the classifier's head gets: 1 for images
that it cannot distinguish. DIR stays as it is.

examples:
  apps/similar.py cat.jpg --data photos/                    with the included gmlp_photo_64
  apps/similar.py cat.jpg --data photos/ --out similar.png  a contact sheet
  apps/similar.py cat.jpg --data photos/ --model runs/gmlp_n4_32-photos --top 20 --json

exit codes: 0 done, 1 an image or the model could not be read, 2 wrong usage,
130 stopped with Ctrl-C
"""


def run(options):
    from keras_gmlp.data.images.find_images import find_images
    from keras_gmlp.inference.similarity import find_similar

    paths = find_images(options.data)
    classifier = cli.load_classifier(options.model, features=True)
    warn = functools.partial(cli.fail, options)
    pairs = find_similar(classifier, options.query, paths, options.top, warn)
    if options.out:
        from keras_gmlp.inspection.plots import draw_similar

        draw_similar(options.query, pairs, Path(options.out))
    found = [{"file": str(path), "similarity": round(value, 6)} for path, value in pairs]
    cli.show_result(options, {"query": options.query, "similar": found}, show)
    if options.out and not options.json:
        print(f"to      {options.out}")


def show(result):
    for row in result["similar"]:
        print(f"{row['similarity']:6.3f}  {printable(row['file'])}")


def check(options):
    if options.out is not None and not options.out.lower().endswith(".png"):
        raise cli.UsageError(f"--out must be a .png file; received {options.out!r}")
    if options.out:
        cli.check_output(options.out, options.data, options.query, options.model)


main = cli.Program("similar", __doc__, USAGE, run, check)
