"""The options that describe a training run, as train.py and compare.py read them."""

import dataclasses
import json
from pathlib import Path

SCRATCH = "none"  # of --weights

# Settings of a recipe whose values are words.
TEXTS = ("optimizer", "precision", "pipeline", "teaching")

# Settings whose values are two numbers, as JSON, or 0 for none.
RANGES = ("resized_crop",)


PATIENCE = """\
--patience EPOCHS:int  end after so many epochs without a better validation score, and save the best
    epoch; requires validation SAMPLES; default: train all epochs and save the last
"""

DATA = r"""
--data NAME|PATH!  digits (bundled), a TensorFlow Datasets name, a folder, or a table (.csv, .tsv)
    with the columns path, label and perhaps split
--data-dir
--image-size PIXELS|HxW:size  side of the images, or height and width, such as 96x160, multiples of
    the patch size; default: the model's
--fit
--fraction FRACTION:float  of the training images; default: all, 1.0
--validation SHARE:float  hold a share of the training images out, such as 0.1, and test these after
    each epoch; the test images are then read at the end alone. Folders may have val/ instead
--groups REGEX  images of a group, such as a burst, a patient or a video, stay on one side; finds
    the group in the path: 'patient(\d+)'
"""

RECIPE = """\
--epochs EPOCHS:int  default: from the recipe
--batch-size BATCH_SIZE:int  default: from the recipe
--learning-rate LEARNING_RATE:float  after the warm-up; default: from the recipe
--seed SEED:int  of weights, order and augmentation; default: from the recipe
--precision auto|float32|mixed_bfloat16|mixed_float16  of the computation; weights stay in
    float32; default: auto, which measures what is faster here
--set NAME=VALUE*  any other setting of the recipe: SETTINGS, ...
--set-model NAME=VALUE*  any argument of the model: ARGUMENTS, ...
"""

# As compare.py reads it, each run has the recipe's precision.
RECIPE_OF_A_SWEEP = RECIPE.replace("auto|", "").replace(
    "auto, which measures what is faster here", "the recipe's"
)

RUN = f"""\
--model PRESET  gmlp, amlp, vit, deit, mixer, resmlp, eamlp or ff_only with _n4_32, small enough for
    a CPU, resnet_56_32, convnet_8_32, or another of keras_gmlp.PRESETS; default: that of the
    weights, or gmlp_n4_32
--weights SOURCE  weights to start from: a run's folder, the name of an included model, a .keras
    file, a file of published weights, or hf-hub:NAME; resized to the images, with a new head if the
    classes differ; none trains from scratch; default: for a folder, table or packed set without
    --model, the included gmlp_photo_64, which knows photographs
--teacher RUN  distillation: a run's folder, the name of an included model or a .keras file whose
    answers join the labels; change how by --set teacher_share=0.5, teaching=hard or token,
    temperature=2, feature_weight=1
--freeze  train only the head{DATA.replace("PATH!", "PATH=digits")}\
--out DIR  default: runs/PRESET-DATA
--recipe RECIPE  quick, standard, long, finetune, resolution, imagenet, airbench; default: quick, or
    finetune with weights; resolution trains weights further on larger images of the same classes
--patch-size PIXELS:int  default: the model's; with 6 instead of 4 a model for 32 pixels has as many
    tokens at 48
--patch-window PIXELS:int  side of what a token is made from, for images larger than the weights': 6
    for weights with patches of 4 at 32 pixels, on images of 48
{PATIENCE.replace("SAMPLES", "images")}\
"""

SETTINGS = (
    "weight_decay=0.05, optimizer=adamw, flip=0 (for letters and signs), alternating_flip=1 (each "
    "image in every other epoch), balance=0.5 (for rare classes, which then count more), "
    "mixup=0.3, cutmix=0.3, resized_crop=[0.08,1], rand_augment=0.4, cutout=0.4, ema=0.05, "
    "stochastic_depth=0.1, layer_decay=0.75, mix_from=0.4 and mix_until=0.8 (MixUp and "
    "CutMix between 40 and 80 %% of the epochs)"
)

ARGUMENTS = "stem=convolutions or residual, pooling=attention, toeplitz=true, heads=8, depth=4"


def list_run_options(recipe=RECIPE):
    """Returns the options of a run on images: model, weights, data, recipe."""
    recipe = recipe.replace("SETTINGS", SETTINGS).replace("ARGUMENTS", ARGUMENTS)
    return f"{RUN}{recipe}--backend\n"


def read_settings(options):
    """Returns the `RunSettings` of a run on images, checked; a `ValueError` names what is wrong."""
    from keras_gmlp.data.datasets import holds_files
    from keras_gmlp.data.images.packed import is_packed
    from keras_gmlp.runs.settings import require_backbone

    weights = options.weights
    if weights == "":  # an unset variable of a shell
        raise ValueError("--weights is empty; expected a run's folder, a file or hf-hub:NAME")
    if weights is None and options.recipe in (None, "finetune"):
        # A user's own images start from the included backbone, unless a model is described.
        described = options.model or options.set_model or options.patch_size or options.patch_window
        own = holds_files(options.data) or is_packed(Path(options.data).expanduser())
        weights = require_backbone() if own and not described else None
    settings = make_settings(options, weights=None if weights == SCRATCH else weights)
    settings.check()
    return settings


def make_settings(options, **replaced):
    """Returns the `RunSettings` of options, some of them replaced."""
    from keras_gmlp.runs.settings import RunSettings

    names = [field.name for field in dataclasses.fields(RunSettings)]
    given = {name: getattr(options, name, None) for name in names} | replaced
    given |= {"set": _read_changes(options.set), "set_model": _read_arguments(options.set_model)}
    given["folds"] = None  # a setting of each run on a fold
    if given["precision"] == "auto":
        given["precision"] = None
    for name in ("weights", "teacher"):
        given[name] = given[name] and given[name].rstrip("/")
    return RunSettings(**{n: value for n, value in given.items() if value not in (None, [])})


def _read_arguments(texts):
    """Returns the values of --set-model, a dict."""
    arguments = {}
    for setting in texts:
        name, _, text = setting.partition("=")
        if not text:
            raise ValueError(f"--set-model {setting}: expected NAME=VALUE.")
        arguments[name] = _read_value(text)
    return arguments


def _read_changes(texts):
    """Returns the values of --set, a dict."""
    changes = {}
    for setting in texts:
        name, _, text = setting.partition("=")
        changes[name] = value = _read_value(text)
        kinds, form = int | float, "NUMBER"
        if name in RANGES:
            kinds, form = int | float | list, "[SMALLEST,LARGEST], or 0 for none"
        if name not in TEXTS and not isinstance(value, kinds):
            raise ValueError(f"--set {setting}: expected {name}={form}.")
    return changes


def _read_value(text):
    """Returns the JSON in a text, or the text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
