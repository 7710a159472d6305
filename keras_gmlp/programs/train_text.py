"""Trains language models and text classifiers, each in one folder."""

from pathlib import Path

from keras_gmlp.programs.shared.cli import UsageError, check_output
from keras_gmlp.programs.shared.messages import print_error
from keras_gmlp.programs.shared.run_options import PATIENCE, RECIPE, make_settings
from keras_gmlp.programs.shared.text_options import COLUMNS
from keras_gmlp.programs.shared.training import (
    TRAINING,
    make_program,
    print_result,
    warn_of_copies,
)
from keras_gmlp.utils.errors import shortened

EXAMPLES = (
    "mask_rate=0.2, epoch_tokens=1000000, length=128, optimizer=adamw, weight_decay=0.01, ema=0.05"
)
ARGUMENTS = "depth=4, max_length=256, gating=additive, dropout=0.1"

USAGE = f"""\
[pre-training]
--text FILE+  .txt or .txt.xz files
--valid FILE+  text to test on
--prepared FOLDER  where the tokens are, or go; default: runs/text. With it alone, --text is not
    needed again
--model PRESET=gmlp_nano  gmlp, amlp or bert with _nano, _small, _medium, or another of
    keras_gmlp.text.PRESETS
--vocabulary-size N:int  of a new tokenizer; default: the preset's, 8192 for nano, 16384 for small
--tokenizer FILE  a tokenizer.json or a vocab.txt
--cased  a new tokenizer keeps capital letters
--strip-accents  a new tokenizer strips the marks of letters, as BERT does; default: é is not e
[fine-tuning]
--task NAME|FILE|FOLDER  labelled texts; see below
--weights RUN  folder of a pre-trained model, the name of an included one, or an original BERT:
    hf-hub:NAME or its folder
{COLUMNS}\
--hold-out SHARE:float  test on a share of the training texts instead, to choose settings
--validation SHARE:float  hold a share of the training texts out, such as 0.1, and test these after
    each epoch; the test texts are then read at the end alone
{PATIENCE.replace("SAMPLES", "texts")}\
--dropout DROPOUT:float=0.1
[]
--data-dir
--out DIR  default: runs/MODEL-DATA
--recipe RECIPE  default: quick, or finetune with --task
{RECIPE.replace("SETTINGS", EXAMPLES).replace("ARGUMENTS", ARGUMENTS)}\
--backend
{TRAINING}

examples:
  apps/train_text.py --text wiki/*.txt --valid held_out.txt
                                     pre-trains a nano gMLP to fill in masked tokens
  apps/train_text.py --text wiki/*.txt --valid held_out.txt --model bert_nano
                                     the same for BERT; the text is prepared once
  apps/train_text.py --task sst2 --weights runs/gmlp_nano-text
                                     fine-tunes it: sst2, mrpc, cola or another set of GLUE
  apps/train_text.py --task sst2 --weights hf-hub:google/bert_uncased_L-4_H-256_A-4
                                     the same for a published BERT
  apps/train_text.py --task reviews.csv --weights runs/gmlp_nano-text
                                     on a CSV, TSV or JSON lines file, or a folder with one folder
                                     of text files for each class

recipes: quick (20M tokens, for a CPU), standard (134M) and long (1.3G, both for a GPU) pre-train;
finetune (3 epochs) trains a task. A text has one paragraph a line and a blank line between
documents; files may be compressed with xz.

A run that was stopped or killed resumes when the same command is given again, without --restart.
"""

FEW = 200  # test texts


def check(options):
    """Raises a `UsageError` if the options do not fit together."""
    tunes, reads_text = options.task is not None, options.text or options.prepared
    new = options.vocabulary_size or options.cased or options.strip_accents
    of_task = (options.column, options.label, options.test, options.hold_out)
    of_task = any(of_task) or options.validation or options.patience
    if tunes and not options.weights:
        raise UsageError("--task requires --weights, the folder of a pre-trained model")
    if options.weights and not tunes:
        raise UsageError("--weights requires --task, such as --task sst2")
    if not (tunes or reads_text):
        raise UsageError("give --text FILE to pre-train, or --task NAME --weights RUN to fine-tune")
    if tunes and reads_text:
        raise UsageError("--text and --prepared are for pre-training; --task fine-tunes")
    if tunes and options.set_model:
        raise UsageError("--set-model is for pre-training; --task takes the model of its weights")
    if of_task and not tunes:
        names = "--column, --label, --test, --hold-out, --validation and --patience"
        raise UsageError(f"{names} require --task")
    if options.patience and not options.validation:
        raise UsageError("--patience requires --validation, such as --validation 0.1")
    if options.text and not options.valid:
        raise UsageError("--text requires --valid FILE, a text that is not in it")
    if (new or options.tokenizer) and not options.text:
        names = "--vocabulary-size, --cased, --strip-accents and --tokenizer"
        raise UsageError(f"{names} are for --text; prepared text has its tokenizer")
    if new and options.tokenizer:
        names = "--vocabulary-size, --cased and --strip-accents"
        raise UsageError(f"{names} are for a new tokenizer; leave them out, or --tokenizer")
    if options.prepared and options.text:
        check_output(options.prepared, *options.text, *options.valid, option="--prepared")


def list_runs(options):
    """Returns the settings of the run that the options describe, checked, in a list."""
    from keras_gmlp.utils.sources import TRAINABLE, find_model

    settings = read_settings(options)
    settings.check()
    if options.task is not None:
        find_model(settings.weights, TRAINABLE)
    return [settings]


def read_settings(options):
    """Returns the settings of the run that the options describe."""
    if options.task is None:
        return make_settings(options, prepared=options.prepared or "runs/text")
    return make_settings(options, model=None)


def begin(options):
    """Encodes the text files of a pre-training, once."""
    from keras_gmlp.training.devices import agree, is_main

    if options.text and is_main():
        prepare_text(options, options.runs[0])
    agree()  # the others wait


def prepare_text(options, settings):
    """Encodes the text files, once."""
    from keras_gmlp.data.text.corpus import prepare_corpus
    from keras_gmlp.data.text.tokenizer import Tokenizer

    known = Path(settings.prepared, "tokenizer.json")
    how = {"lowercase": not options.cased, "strip_accents": options.strip_accents}
    asked = (options.cased or options.strip_accents) and known.exists()
    if asked and not Tokenizer.load(known).has_steps(**how):
        raise ValueError(
            f"{known}: is another tokenizer; choose another folder, or leave out --cased and "
            "--strip-accents to take it."
        )
    tokenizer = options.tokenizer or options.vocabulary_size
    if tokenizer is None:
        tokenizer = known if known.exists() else usual_words(settings.model)
    prepare_corpus(options.text, tokenizer, settings.prepared, valid=options.valid, **how)


def usual_words(preset):
    """Returns the number of tokens in the vocabulary that a preset usually has."""
    from keras_gmlp.models.presets import TEXT_PRESETS, lookup

    return lookup(preset, TEXT_PRESETS)[1]["vocabulary_size"]


def introduce(run):
    """Prints what will be trained on what."""
    settings, data = run.settings, run.data
    summary = f"{data.name}, {run.recipe.task.summarize_data(data)}"
    parameters = f"{run.model.count_params():,} parameters"
    if settings.task is None:
        print(f"model  {settings.model}, {parameters}\ndata   {summary}")
        usual, size, advice = usual_words(settings.model), data.tokenizer.size, ""
        if size != usual:
            advice = (
                f"; {settings.model} usually has {usual:,}. To train that vocabulary, repeat "
                "--text and --valid with a new --prepared folder"
            )
        print(f"words  {size:,}, from {settings.prepared}/tokenizer.json{advice}")
    else:
        print(f"model  {settings.weights}, {parameters}\ndata   {summary}")
    print(f"in     {run.recipe.precision}")
    print(f"to     {settings.out}")


def warn_of_data(run):
    """Prints what speaks against the data of a run."""
    from keras_gmlp.inspection.near_duplicates import find_equal_texts

    task, data = run.recipe.task, run.data
    if task.headline == "accuracy":
        warn_of_few(data)
        if found := find_equal_texts(data):
            example = f"such as {shortened(repr(found[0]), 60)}"
            warn_of_copies("train_text", "texts", found, data.test, example)
    if line := task.find_unknown(data):
        print_error("train_text: warning", line)


def warn_of_few(data):
    """Prints a line if the test is too small to say much."""
    samples = len(data.test)
    if samples >= FEW:
        return
    error = 50 / samples**0.5
    print_error(
        "train_text: warning",
        f"number of test texts: {samples:,}, so the accuracy has a standard error of up to "
        f"{error:.0f} points. Test on more if you can (--test, --hold-out).",
    )


def report(options, results, directory):
    """Prints the results."""
    metrics = results[0]
    scores = {key: value for key, value in metrics.items() if key.startswith("test_")}
    result = ", ".join(f"{key.replace('_', ' ')} {value:.4g}" for key, value in scores.items())
    one = metrics.get("test_predicted_classes") == 1
    lines = ["It predicts one class alone. Try another --seed or --learning-rate."] * one
    print_result(options, metrics, directory, result, lines)


main = make_program(
    "train_text",
    __doc__,
    USAGE,
    list_runs,
    introduce=introduce,
    warn=warn_of_data,
    report=report,
    check=check,
    begin=begin,
)
