"""The options that describe a training run, as train.py and compare.py read them."""

import dataclasses
import json
import re

from keras_gmlp.programs.shared.text_options import COLUMNS

# Settings of a recipe whose values are words.
WORDS = ("optimizer", "precision", "pipeline")


DATA = r"""
--data NAME|PATH  digits (bundled), a TensorFlow Datasets name, a folder, or a table (.csv, .tsv)
    with the columns path, label and perhaps split; default: digits
--data-dir
--image-size PIXELS|HxW:size  side of the images, or height and width, such as 96x160, multiples of
    the patch size; default: the model's
--fit
--fraction FRACTION:float  of the training images; default: all, 1.0
--validation SHARE:float  hold a share of the training samples out, such as 0.1, and test these
    after each epoch; the test samples are then read at the end only. Folders of images may have
    val/ instead
--groups REGEX  images of a group, such as a burst, a patient or a video, stay on one side; finds
    the group in the path: 'patient(\d+)'
"""

TEXTS = f"""\
[texts]  in place of --data; --prepared pre-trains a language model, --task fine-tunes one
--prepared FOLDER  of a text, with its tokens and its tokenizer
--task NAME|FILE|FOLDER  labelled texts: sst2, mrpc, cola or another set of GLUE, a CSV, TSV or JSON
    lines file, or a folder with one folder of text files for each class
{COLUMNS}\
--hold-out SHARE:float  test on a share of the training texts instead, to choose settings
--dropout DROPOUT:float  of the fine-tuning; default: 0.1
[]
"""

RECIPE = """\
--epochs EPOCHS:int  default: from the recipe
--batch-size BATCH_SIZE:int  default: from the recipe
--learning-rate LEARNING_RATE:float  after the warm-up; default: from the recipe
--seed SEED:int  of weights, order and augmentation; default: from the recipe
--precision float32|mixed_bfloat16|mixed_float16  of the computation; weights stay in float32;
    default: what is faster here, which is measured
--set NAME=VALUE*  any other setting of the recipe: weight_decay=0.05, optimizer=adamw, flip=0 (for
    letters and signs), alternating_flip=1 (each image in every other epoch), balance=0.5 (for rare
    classes, which then count more), mixup=0.3, cutmix=0.3, resized_crop=[0.08,1], rand_augment=0.4,
    cutout=0.4, ema=0.05, stochastic_depth=0.1, layer_decay=0.75, mix_from=0.4 and mix_until=0.8
    (MixUp and CutMix between 40 and 80 %% of the epochs); of texts length=128, mask_rate=0.2,
    epoch_tokens=1000000, ...
--set-model NAME=VALUE*  any argument of the model: stem=convolutions or residual,
    pooling=attention, toeplitz=true, heads=8, depth=4; of texts max_length=256,
    gating=additive, ...
"""

RUN = f"""\
--model PRESET  gmlp, amlp, vit, deit, mixer, resmlp, eamlp or ff_only with _n4_32, small enough for
    a CPU, resnet_56_32, convnet_8_32, or another of keras_gmlp.PRESETS; of texts gmlp, amlp or bert
    with _nano, _small, _medium, or another of keras_gmlp.text.PRESETS; default: that of the
    weights, gmlp_n4_32, or gmlp_nano
--weights SOURCE  weights to start from: a run's folder, the name of an included model, a .keras
    file, a file of published weights, or hf://NAME; resized to the images, with a new head if the
    classes differ; none trains from scratch; default: for a folder, table or packed set without
    --model, the included gmlp_photo_64, which knows photographs. For --task, a language model or an
    original BERT
--teacher RUN  distillation: a run's folder, the name of an included model or a .keras file whose
    answers join the labels; change how by --set teacher_share=0.5, temperature=2,
    feature_weight=1
--freeze  train only the head{DATA}\
--out DIR  default: runs/PRESET-DATA
--recipe RECIPE  quick, standard, long, finetune, resolution, imagenet, airbench; of texts quick,
    standard, long, finetune; default: quick, or finetune with weights; resolution trains weights
    further on larger images of the same classes
--patch-size PIXELS:int  default: the model's; with 6 instead of 4 a model for 32 pixels has as many
    tokens at 48
--patch-window PIXELS:int  side of what a token is made from, for images larger than the weights': 6
    for weights with patches of 4 at 32 pixels, on images of 48
--patience EPOCHS:int  end after so many epochs without a better validation score, and save the best
    epoch; requires validation samples; default: train all epochs and save the last
{TEXTS}\
"""


def list_run_options(*without):
    """Returns the options of a run, model, weights, data and recipe, without some of them."""
    options = f"{RUN}{RECIPE}--backend\n"
    return re.sub(rf"^--({'|'.join(without)}) .*\n(    .*\n)*", "", options, flags=re.MULTILINE)


def read_settings(options):
    """Returns the `RunSettings` of a run, checked; a `ValueError` names what is wrong."""
    from keras_gmlp.runs.settings import RunSettings

    names = [field.name for field in dataclasses.fields(RunSettings)]
    given = {name: getattr(options, name, None) for name in names}
    given["set_model"] = _read_values("--set-model", options.set_model)
    given["set"] = _read_values("--set", options.set)
    for name, value in given["set"].items():
        if name not in WORDS and not isinstance(value, int | float | list):
            raise ValueError(f"--set {name}={value}: expected {name}=NUMBER.")
    given["folds"] = None  # a setting of each run on a fold
    for name in ("weights", "teacher"):
        given[name] = given[name] and given[name].rstrip("/")
    settings = RunSettings(**{n: value for n, value in given.items() if value not in (None, [])})
    settings.check()
    return settings


def _read_values(option, texts):
    """Returns the values of NAME=VALUE, a dict: JSON, or a text."""
    values = {}
    for setting in texts:
        name, _, text = setting.partition("=")
        if not text:
            raise ValueError(f"{option} {setting}: expected NAME=VALUE.")
        try:
            values[name] = json.loads(text)
        except (ValueError, RecursionError):
            values[name] = text
    return values
