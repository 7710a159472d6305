"""Draws what a trained model has learned: filters, attention, class maps."""

import functools
from pathlib import Path

from keras_gmlp.programs.shared import cli
from keras_gmlp.utils.files import require_output

PICTURES = ("filters", "attention", "explain")
SENTENCE = "The cat that the dogs chased was found in the old house by the river."

USAGE = """\
run RUN?  folder of a run, or the name of an included model; default: the included gmlp_photo_64
--out DIR  output folder; default: RUN/pictures, without RUN runs/gmlp_photo_64/pictures
--only PICTURE+  default: all that apply
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
    cli.import_tensorflow()
    from keras_gmlp.models.structure import NotApplicableError
    from keras_gmlp.tasks.registry import find_task
    from keras_gmlp.utils.sources import DEFAULT_BACKBONE, find_model
    from keras_gmlp.weights.loading import load

    file, _ = find_model(options.run or DEFAULT_BACKBONE, ("keras",))
    folder = file.parent if options.run else Path("runs", DEFAULT_BACKBONE)
    model = load(file)
    texts = find_task(model.task).domain == "texts"
    pictures = (list_text_pictures if texts else list_pictures)(options, model)
    paths = []
    for name in options.only or pictures:
        if name not in pictures:
            known = " and ".join(pictures)
            raise ValueError(f"{file}: has no picture {name}; it has {known}.")
        path = Path(options.out or folder / "pictures", f"{name}.png")
        try:
            pictures[name](path)
        except NotApplicableError as error:
            if options.only:
                raise
            cli.fail(options, f"skipped {name}: {error}", code=0)
            continue
        paths.append(str(path))
        if not options.json:
            print(path, flush=True)
    cli.show_result(options, {"pictures": paths})


def list_pictures(options, classifier):
    """Returns functions that draw the pictures of an image model to a path, by name."""
    from keras_gmlp.analysis import plots
    from keras_gmlp.data.run_folder import Run

    model = classifier.model

    @functools.cache
    def choose_image():
        if options.image:
            return classifier.read(options.image), Path(options.image).name
        fit = classifier.preparation.get("fit", "crop")
        dataset = Run(classifier.path).load_images(classifier.image_shape, options.data, fit)
        images, labels = dataset.test.take(slice(1)).arrays()
        named = f": {dataset.labels[labels[0]]}" if dataset.label_sets is None else ""
        return images[0], f"test image{named}"

    def attention(path):
        image, title = choose_image()
        plots.draw_attention(model, image, path, title)

    def explain(path):
        image, title = choose_image()
        classes = choose_classes(options, classifier, options.image or image)
        plots.draw_class_maps(model, image, *classes, path, title)

    filters = functools.partial(plots.draw_spatial_filters, model)
    return {"filters": filters, "attention": attention, "explain": explain}


def list_text_pictures(options, opened):
    """Returns for a text model what `list_pictures` does."""
    from keras_gmlp.analysis import plots

    given = opened.model, opened.tokenizer, options.text or SENTENCE
    return {
        "filters": functools.partial(plots.draw_distance_filters, opened.model),
        "attention": functools.partial(plots.draw_token_attention, *given),
    }


def choose_classes(options, classifier, image):
    """Returns the indices of the classes to explain, and a caption for each."""
    from keras_gmlp.utils.errors import require_one_of

    rows = classifier.answer(image, len(classifier.labels))
    if options.label is not None:
        require_one_of("--class", options.label, classifier.labels)
        rows = [row for row in rows if row["index"] == classifier.labels.index(options.label)]
    elif options.top is None and classifier.confidence.thresholds is not None:
        rows = [row for row in rows if row["applies"]] or rows[:1]
    else:
        rows = rows[: options.top or 1]
    captions = [f"{row['label']} {100 * row['score']:.0f} %" for row in rows]
    return [row["index"] for row in rows], captions


def check(options):
    if options.out:
        for output in (options.out, *(Path(options.out, f"{name}.png") for name in PICTURES)):
            require_output(output, options.data, options.image)


SETTINGS = {"only": {"choices": PICTURES}, "class": {"dest": "label"}}
main = cli.Program("visualize", __doc__, USAGE, run, check, **SETTINGS)
