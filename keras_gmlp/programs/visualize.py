"""Draws what a trained model has learned: filters, attention, class maps, confusion, mistakes."""

import json
import sys
from pathlib import Path

from keras_gmlp.programs.shared.cli import (
    Parser,
    add_data_dir,
    guarded,
    import_tensorflow,
    one_line,
)

PICTURES = ("filters", "attention", "explain", "confusion", "mistakes")

TEXT_PICTURES = ("filters", "attention")

SENTENCE = "The cat that the dogs chased was found in the old house by the river."

EPILOG = """\
pictures:
  filters     the spatial weights of each block (gMLP, Mixer, ResMLP, ...)
  attention   where the blocks of an aMLP or a ViT look in an image
  explain     which parts of an image speak for the predicted class, and which against it; for
              a model of several labels each label that applies
  confusion   which classes the model confuses, over the test images
  mistakes    the misclassified test images with the highest confidence
of a text model:
  filters     the weight that each gate gives to a token by its distance (gMLP, aMLP)
  attention   what the blocks of an aMLP or a BERT look at in a text

examples:
  apps/visualize.py gmlp_n4_32-cifar10
  apps/visualize.py runs/vit_n4_32-digits --only attention --image docs/seven.png
  apps/visualize.py --only explain --image docs/cat.jpg --top 3     the included gmlp_photo_64
  apps/visualize.py runs/amlp_nano-text --text "Paris is the capital of France."

exit codes: 0 done, 1 failure, 2 wrong usage, 130 stopped with Ctrl-C
"""


def parse(arguments):
    parser = Parser(description=__doc__, epilog=EPILOG)
    parser.add_argument(
        "run",
        nargs="?",
        metavar="RUN",
        help="folder of a run, or the name of an included model; default: the included "
        "gmlp_photo_64",
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        help="output folder; default: RUN/pictures, without RUN runs/gmlp_photo_64/pictures",
    )
    parser.add_argument(
        "--only",
        nargs="+",
        choices=PICTURES,
        metavar="PICTURE",
        help="default: all that apply",
    )
    parser.add_argument(
        "--tokens",
        type=int,
        nargs="+",
        metavar="N",
        help="indices of filters; default: eight",
    )
    parser.add_argument(
        "--image", metavar="FILE", help="for attention and explain; default: a test image"
    )
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--class", dest="label", metavar="NAME", help="the class to explain")
    chosen.add_argument(
        "--top",
        type=int,
        metavar="N",
        help="explain the N most probable classes; default: 1, or the labels that apply",
    )
    parser.add_argument("--text", help="for attention of a text model; default: a sentence")
    parser.add_argument("--data", metavar="NAME|FOLDER", help="test data; default: from the run")
    add_data_dir(parser)
    parser.add_argument("--json", action="store_true", help="print the pictures' paths as JSON")
    options = parser.parse_args(arguments)
    if options.top is not None and options.top < 1:
        parser.error(f"--top must be at least 1; received {options.top}")
    return options


def main(arguments=None):
    options = parse(arguments)
    return guarded("visualize", lambda: run(options))


def run(options):
    paths = []
    for path in draw(options):
        paths.append(str(path))
        if not options.json:
            print(path, flush=True)
    if options.json:
        print(json.dumps({"pictures": paths}))
    return 0


def draw(options):
    """Draws the pictures and yields their paths."""
    import_tensorflow()
    from keras_gmlp import data
    from keras_gmlp.analysis import plots
    from keras_gmlp.inference import images as inference
    from keras_gmlp.inference import opening as saving
    from keras_gmlp.inference.card import read_card
    from keras_gmlp.utils.shipped import DEFAULT_BACKBONE, find_shipped

    directory = Path(find_shipped(DEFAULT_BACKBONE if options.run is None else options.run))
    place = Path("runs", DEFAULT_BACKBONE) if options.run is None else directory
    out = Path(options.out or place / "pictures")
    wanted = options.only or PICTURES
    if read_card(saving.model_path(directory)).get("task"):
        yield from draw_text(options, directory, out)
        return
    classifier = inference.load(saving.model_path(directory))
    model = classifier.model
    if classifier.thresholds is not None:
        wanted = leave_out(options, wanted, directory)
    if "filters" in wanted:
        yield from attempt(
            options,
            lambda p: plots.draw_spatial_filters(model, p, options.tokens),
            out,
            "filters",
        )
    needs_data = {"confusion", "mistakes"} & set(wanted)
    if not options.image:
        needs_data |= {"attention", "explain"} & set(wanted)
    if needs_data:
        dataset = load_test_images(options, directory, classifier)
        images, labels = data.arrays(dataset)
    if {"attention", "explain"} & set(wanted):
        image = classifier.read(options.image) if options.image else images[0]
        title = Path(options.image).name if options.image else "test image"
        if needs_data and not options.image and dataset.label_sets is None:
            title = f"test image: {dataset.labels[labels[0]]}"
    if "attention" in wanted:
        yield from attempt(
            options,
            lambda path: plots.draw_attention(model, image, path, title),
            out,
            "attention",
        )
    if "explain" in wanted:
        classes, captions = choose_classes(options, classifier, image)
        yield from attempt(
            options,
            lambda path: plots.draw_class_maps(model, image, classes, captions, path, title),
            out,
            "explain",
        )
    if not {"confusion", "mistakes"} & set(wanted):
        return
    logits = model.predict(images, batch_size=250, verbose=0)
    if "confusion" in wanted:
        plots.draw_confusion(labels, logits.argmax(-1), dataset.labels, out / "confusion.png")
        yield out / "confusion.png"
    if "mistakes" in wanted:
        plots.draw_mistakes(images, labels, logits, dataset.labels, out / "mistakes.png")
        yield out / "mistakes.png"


def choose_classes(options, classifier, image):
    """Returns the indices of the classes to explain, and a caption for each."""
    from keras_gmlp.utils.errors import first_of

    probabilities = classifier.probabilities(classifier.logits(image[None])[0])
    classes = (-probabilities).argsort(kind="stable").tolist()
    if options.label is not None:
        if options.label not in classifier.labels:
            raise ValueError(
                f"--class {options.label!r}: no class of this model; expected one of "
                f"{first_of(classifier.labels, 10, 'or')}."
            )
        classes = [classifier.labels.index(options.label)]
    elif options.top is None and classifier.thresholds is not None:
        apply = [i for i in classes if probabilities[i] >= classifier.thresholds[i]]
        classes = apply or classes[:1]
    else:
        classes = classes[: options.top or 1]
    return classes, [f"{classifier.labels[i]} {100 * probabilities[i]:.0f} %" for i in classes]


def leave_out(options, wanted, directory):
    """Returns the pictures that apply to a model of several labels."""
    single = [name for name in wanted if name in ("confusion", "mistakes")]
    if single and options.only:
        raise ValueError(
            f"{directory}: gives several labels for an image, so it has no {' or '.join(single)}; "
            "apps/evaluate.py scores each label."
        )
    for name in single:
        print(f"visualize: skipped {name}: requires one label for an image", file=sys.stderr)
    return [name for name in wanted if name not in single]


def draw_text(options, directory, out):
    """Draws the pictures of a text model and yields their paths."""
    from keras_gmlp.analysis import text_plots
    from keras_gmlp.inference import text as text_inference

    wanted = options.only or TEXT_PICTURES
    if unknown := [name for name in wanted if name not in TEXT_PICTURES]:
        raise ValueError(
            f"{directory} is a text model, which has the pictures {' and '.join(TEXT_PICTURES)}; "
            f"received {', '.join(unknown)}."
        )
    source = text_inference.load(directory / "model.keras")
    model, tokenizer, sentence = source.model, source.tokenizer, options.text or SENTENCE
    draws = {
        "filters": lambda path: text_plots.draw_distance_filters(model, path),
        "attention": lambda path: text_plots.draw_token_attention(model, tokenizer, sentence, path),
    }
    for name in wanted:
        yield from attempt(options, draws[name], out, name)


def attempt(options, function, out, name):
    """Draws a picture; skips it with a note if the model lacks it and --only does not name it."""
    from keras_gmlp.models.structure import NotApplicableError

    path = out / f"{name}.png"
    try:
        function(path)
    except NotApplicableError as error:
        if options.only:
            raise
        print(f"visualize: skipped {name}: {one_line(error)}", file=sys.stderr)
        return
    yield path


def load_test_images(options, directory, classifier):
    """Returns the data whose test images are drawn, an `ImageData`."""
    from keras_gmlp.data.datasets import load_recorded, require_one_label
    from keras_gmlp.utils.files import read_json

    recipe = read_json(directory / "recipe.json", {})
    name = options.data or recipe.get("data")
    if not name:
        raise ValueError(f"{directory}: no data named in recipe.json; give --data.")
    if classifier.thresholds is None:
        require_one_label(name)
    fit = classifier.preparation.get("fit", "crop")
    dataset = load_recorded(recipe, classifier.image_shape, name, options.data_dir, fit)
    if tuple(dataset.labels) != tuple(classifier.labels):
        raise ValueError(f"{directory}: the model's classes differ from those of {name}.")
    return dataset


if __name__ == "__main__":
    sys.exit(main())
