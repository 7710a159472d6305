"""Draws what a trained model has learned: filters, attention, class maps, confusion, mistakes."""

import functools
from pathlib import Path

from keras_gmlp.programs.shared import cli
from keras_gmlp.programs.shared.messages import print_error

PICTURES = ("filters", "attention", "explain", "confusion", "mistakes")
TEXT_PICTURES = ("filters", "attention")
SENTENCE = "The cat that the dogs chased was found in the old house by the river."

USAGE = """\
run RUN?  folder of a run, or the name of an included model; default: the included gmlp_photo_64
--out DIR  output folder; default: RUN/pictures, without RUN runs/gmlp_photo_64/pictures
--only PICTURE+  default: all that apply
--tokens N:int+  indices of filters; default: eight
--image FILE  for attention and explain; default: a test image
[either]
--class NAME  the class to explain
--top N:count  explain the N most probable classes; default: 1, or the labels that apply
[]
--text TEXT  for attention of a text model; default: a sentence
--data NAME|FOLDER  test data; default: from the run
--data-dir
--json  print the pictures' paths as JSON

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

"""


def run(options):
    paths = []
    for path in draw(options):
        paths.append(str(path))
        if not options.json:
            print(path, flush=True)
    cli.show_result(options, {"pictures": paths})


def draw(options):
    """Draws the pictures and yields their paths."""
    cli.import_tensorflow()
    from keras_gmlp.inference import images as inference
    from keras_gmlp.models.structure import NotApplicableError
    from keras_gmlp.tasks.registry import find_task
    from keras_gmlp.utils.card import read_card
    from keras_gmlp.utils.shipped import DEFAULT_BACKBONE
    from keras_gmlp.utils.sources import find_model

    model, _ = find_model(DEFAULT_BACKBONE if options.run is None else options.run, ("keras",))
    directory = model.parent
    place = Path("runs", DEFAULT_BACKBONE) if options.run is None else directory
    out = Path(options.out or place / "pictures")
    wanted = options.only or PICTURES
    if find_task(read_card(model).get("task")).domain == "texts":
        draws = text_pictures(options, directory)
    else:
        classifier = inference.load(model)
        if classifier.thresholds is not None:
            wanted = leave_out(options, wanted, directory)
        draws = image_pictures(options, directory, classifier)
    for name in (name for name in draws if name in wanted):
        path = out / f"{name}.png"
        try:
            draws[name](path)
        except NotApplicableError as error:
            if options.only:
                raise
            print_error(f"visualize: skipped {name}", error)
        else:
            yield path


def image_pictures(options, directory, classifier):
    """Returns functions from a path, by the names of the pictures that they draw."""
    from keras_gmlp import data
    from keras_gmlp.analysis import plots
    from keras_gmlp.evaluation.plots import draw_confusion, draw_mistakes

    model = classifier.model

    @functools.cache
    def test_set():
        dataset = load_test_images(options, directory, classifier)
        return dataset, *data.arrays(dataset)

    @functools.cache
    def logits():
        return model.predict(test_set()[1], batch_size=250, verbose=0)

    def chosen_image():
        if options.image:
            return classifier.read(options.image), Path(options.image).name
        dataset, images, labels = test_set()
        named = f": {dataset.labels[labels[0]]}" if dataset.label_sets is None else ""
        return images[0], f"test image{named}"

    def attention(path):
        image, title = chosen_image()
        plots.draw_attention(model, image, path, title)

    def explain(path):
        image, title = chosen_image()
        classes = choose_classes(options, classifier, image)
        plots.draw_class_maps(model, image, *classes, path, title)

    def confusion(path):
        dataset, _, labels = test_set()
        draw_confusion(labels, logits().argmax(-1), dataset.labels, path)

    def mistakes(path):
        dataset, images, labels = test_set()
        draw_mistakes(images, labels, logits(), dataset.labels, path)

    def filters(path):
        plots.draw_spatial_filters(model, path, options.tokens)

    return {draw.__name__: draw for draw in (filters, attention, explain, confusion, mistakes)}


def text_pictures(options, directory):
    """Returns for a text model what `image_pictures` does."""
    from keras_gmlp.analysis import plots
    from keras_gmlp.inference import text as text_inference

    if unknown := [name for name in options.only or () if name not in TEXT_PICTURES]:
        raise ValueError(
            f"{directory} is a text model, which has the pictures {' and '.join(TEXT_PICTURES)}; "
            f"received {', '.join(unknown)}."
        )
    source, sentence = text_inference.load(directory / "model.keras"), options.text or SENTENCE
    model, tokenizer = source.model, source.tokenizer
    return {
        "filters": lambda path: plots.draw_distance_filters(model, path),
        "attention": lambda path: plots.draw_token_attention(model, tokenizer, sentence, path),
    }


def choose_classes(options, classifier, image):
    """Returns the indices of the classes to explain, and a caption for each."""
    from keras_gmlp.utils.errors import first_of
    from keras_gmlp.utils.labels import show_labels

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
    names = show_labels(classifier.labels)
    return classes, [f"{names[i]} {100 * probabilities[i]:.0f} %" for i in classes]


def leave_out(options, wanted, directory):
    """Returns the pictures that apply to a model of several labels."""
    single = [name for name in wanted if name in ("confusion", "mistakes")]
    if single and options.only:
        raise ValueError(
            f"{directory}: gives several labels for an image, so it has no {' or '.join(single)}; "
            "apps/evaluate.py scores each label."
        )
    for name in single:
        print_error(f"visualize: skipped {name}", "requires one label for an image")
    return [name for name in wanted if name not in single]


def load_test_images(options, directory, classifier):
    """Returns the data whose test images are drawn, an `ImageData`."""
    from keras_gmlp.data.images.label_sets import refuse_several
    from keras_gmlp.data.run_folder import Run

    fit = classifier.preparation.get("fit", "crop")
    dataset = Run(directory).load_images(classifier.image_shape, options.data, fit)
    if classifier.thresholds is None:
        refuse_several(dataset.name, dataset.label_sets)
    if tuple(dataset.labels) != tuple(classifier.labels):
        raise ValueError(f"{directory}: the model's classes differ from those of {dataset.name}.")
    return dataset


def check(options):
    if options.out:
        for output in (options.out, *(Path(options.out, f"{name}.png") for name in PICTURES)):
            cli.check_output(output, options.data, options.image)


SETTINGS = {"only": {"choices": PICTURES}, "class": {"dest": "label"}}
main = cli.Program("visualize", __doc__, USAGE, run, check, **SETTINGS)
