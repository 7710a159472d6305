"""Finds the images in a folder that are most similar to another image, or the lines of a text."""

import functools
import os
from pathlib import Path

from keras_gmlp.programs.shared import cli
from keras_gmlp.programs.shared.text_options import SHOWN
from keras_gmlp.utils.errors import printable, shortened
from keras_gmlp.utils.inputs import TEXTS
from keras_gmlp.utils.sources import DEFAULT_LANGUAGE_MODEL

USAGE = """\
query QUERY  an image file, or a text
--data DIR|FILE!  a folder; its subfolders are searched, too; or a .txt file with a text a line
--model MODEL  the folder of a run, the name of an included model, a .keras file, a .tflite file of
    apps/export.py --formats features, or, for images, published weights (a file or hf-hub:NAME);
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

exit codes: 0 done, 1 an image or the model could not be read, 2 wrong usage,
130 stopped with Ctrl-C
"""


def run(options):
    if options.texts:
        run_texts(options)
        return
    from keras_gmlp.data.images.find_images import find_images
    from keras_gmlp.inference.similarity import find_similar

    own = os.path.realpath(options.query)
    paths = [path for path in find_images(options.data) if os.path.realpath(path) != own]
    if not paths:
        raise ValueError(f"{printable(options.query)}: no other image to compare it with.")
    classifier = cli.load_model(options.model, features=True, domain="images")
    report = functools.partial(cli.fail, options)
    pairs = find_similar(classifier, options.query, paths, options.top, report)
    if options.out:
        from keras_gmlp.inspection.plots import draw_similar

        draw_similar(options.query, [(paths[i], value) for i, value in pairs], Path(options.out))
    found = [{"file": str(paths[i]), "similarity": round(value, 6)} for i, value in pairs]
    cli.show_result(options, {"query": options.query, "similar": found}, show)
    if options.out and not options.json:
        print(f"to      {options.out}")


def run_texts(options):
    """Prints the lines of a file that are most similar to a text."""
    from keras_gmlp.inference.similarity import find_similar
    from keras_gmlp.utils.text_files import read_lines

    rows = [found for found in enumerate(read_lines(options.data), 1) if found[1].strip()]
    if not rows:
        raise ValueError(f"{printable(options.data)}: has no text; expected a text a line.")
    notes = []
    source = options.model or DEFAULT_LANGUAGE_MODEL
    model = cli.load_model(source, features=True, domain="texts", warn=notes.append)
    pairs = find_similar(model, options.query, [line for _, line in rows], options.top)
    found = [{"line": rows[n][0], "text": rows[n][1], "similarity": round(s, 6)} for n, s in pairs]
    cli.show_result(options, {"query": options.query, "similar": found}, show)
    for line in notes:
        cli.fail(options, line, code=0)


def show(result):
    for row in result["similar"]:
        place = (
            f"{row['line']:>5}  {shortened(row['text'], SHOWN)}" if "line" in row else row["file"]
        )
        print(f"{row['similarity']:6.3f}  {printable(place)}")


def check(options):
    options.texts = options.data.lower().endswith(TEXTS)
    if options.texts and os.path.isfile(options.query):
        raise cli.UsageError(f"{printable(options.query)} is a file; --data is a text: give a text")
    if options.texts and options.out:
        raise cli.UsageError("--out is for images; give --json for texts")
    if options.out:
        cli.check_output(options.out, options.data, options.query, options.model)


main = cli.Program("similar", __doc__, USAGE, run, check)
