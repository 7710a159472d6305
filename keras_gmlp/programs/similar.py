"""Finds the images in a folder that are most similar to another image, or the lines of a text."""

import functools
import os
from pathlib import Path

from keras_gmlp.programs.shared import cli
from keras_gmlp.programs.shared.text_options import SHOWN
from keras_gmlp.utils.errors import printable, shortened
from keras_gmlp.utils.files import require_output
from keras_gmlp.utils.inputs import TEXTS
from keras_gmlp.utils.sources import DEFAULT_LANGUAGE_MODEL

USAGE = """\
query QUERY  an image file, or a text
--data DIR|FILE!  a folder; its subfolders are searched, too; or a .txt file with a text a line
--model MODEL  the folder of a run, the name of an included model, a .keras file, a .tflite file of
    apps/export.py --formats features, or, for images, published weights (a file or hf://NAME);
    default: the included gmlp_photo_64, for texts amlp_nano-wiki
--top N:count=15  images, or lines, to find
--out FILE  .png file for a contact sheet of images
--backend
--json  print the result as JSON

The similarity is the cosine between the vectors that the classifier's head gets: 1 for images
that it cannot distinguish. DIR stays as it is.

If --data is a text file, QUERY is a text, and the lines of the file are compared with it, by the
means of a language model's encoded tokens.

examples:
  apps/similar.py cat.jpg --data photos/                    with the included gmlp_photo_64
  apps/similar.py cat.jpg --data photos/ --out similar.png  a contact sheet
  apps/similar.py cat.jpg --data photos/ --model runs/gmlp_n4_32-photos --top 20 --json
  apps/similar.py "lunch on the beach" --data notes.txt     with the included amlp_nano-wiki
"""


def run(options):
    from keras_gmlp.data.images.find_images import find_images
    from keras_gmlp.inference.similarity import find_similar
    from keras_gmlp.utils.text_files import read_lines

    if options.texts:
        lines = enumerate(read_lines(options.data), 1)
        rows = [{"line": number, "text": line} for number, line in lines if line.strip()]
        samples, usual, domain = [row["text"] for row in rows], DEFAULT_LANGUAGE_MODEL, "texts"
    else:
        own = os.path.realpath(options.query)
        samples = [path for path in find_images(options.data) if os.path.realpath(path) != own]
        rows, usual, domain = [{"file": str(path)} for path in samples], None, "images"
    if not rows:
        raise ValueError(f"{printable(options.data)}: has no {domain} to compare with.")
    warn, report = (functools.partial(cli.fail, options, code=code) for code in (0, 1))
    model = cli.load_model(options.model or usual, features=True, domain=domain, warn=warn)
    pairs = find_similar(model, options.query, samples, options.top, report)
    found = [{**rows[i], "similarity": round(value, 6)} for i, value in pairs]
    if options.out:
        from keras_gmlp.inspection.plots import draw_similar

        draw_similar(options.query, [(samples[i], value) for i, value in pairs], Path(options.out))
    cli.show_result(options, {"query": options.query, "similar": found}, show)
    if options.out and not options.json:
        print(f"to      {options.out}")


def show(result):
    for row in result["similar"]:
        place = (
            f"{row['line']:>5}  {shortened(row['text'], SHOWN)}" if "line" in row else row["file"]
        )
        print(f"{row['similarity']:6.3f}  {printable(place)}")


def check(options):
    options.texts = options.data.lower().endswith(TEXTS)
    if options.texts and os.path.isfile(options.query):
        raise ValueError(f"{printable(options.query)} is a file; --data is a text: give a text")
    if options.texts and options.out:
        raise ValueError("--out is for images; give --json for texts")
    if options.out:
        require_output(options.out, options.data, options.query, options.model)


main = cli.Program("similar", __doc__, USAGE, run, check)
