"""Trains a model on images or texts, shows the progress, and leaves everything in one folder."""

import functools
import sys
from pathlib import Path

from keras_gmlp.programs.shared import cli
from keras_gmlp.programs.shared.processes import PROCESSES, joining
from keras_gmlp.programs.shared.run_options import list_run_options, read_settings
from keras_gmlp.utils.files import require_output

USAGE = f"""\
{list_run_options()}\
[new texts]  prepares a folder, by default runs/text, to pre-train on
--text FILE+  .txt or .txt.xz files, with a paragraph a line and a blank line between documents
--valid FILE+  text to test on
--vocabulary-size N:int  of a new tokenizer; default: the preset's, 8192 for nano, 16384 for small
--tokenizer FILE  a tokenizer.json or a vocab.txt
--cased  a new tokenizer keeps capital letters
--strip-accents  a new tokenizer strips the marks of letters, as BERT does; default: é is not e
[]
--devices N|all=1  number of devices, of each process, that split each batch, on the JAX backend;
    --batch-size is the global batch size
{PROCESSES}\
--folds K:int  cross-validation: train K runs, in OUT/fold-1 and so on, each without one K-th of the
    training images, which it tests; reads no test images and exports nothing
--no-export  do not write model.tflite of an image model
--restart  delete the run in OUT and start
--json  print the metrics as JSON, no progress

examples:
  apps/train.py                                        a gMLP on handwritten digits, a minute
  apps/train.py --data cifar10 --recipe standard       CIFAR-10, about three hours on one core
  apps/train.py --data my_photos/                      a folder with one folder for each class,
                                                       from a model that knows photographs
  apps/train.py --data my_photos/ --weights none --image-size 64          the same from scratch
  apps/train.py --recipe long --set mixup=0.2          a recipe with one setting changed
  apps/train.py --data my_photos/ --folds 5            cross-validation: mean and deviation
  apps/train.py --weights gmlp_n4_32-cifar10 --data my_photos/
                                                       start from a trained model
  apps/train.py --text wiki/*.txt --valid held_out.txt
                                                       a nano gMLP that fills in masked tokens
  apps/train.py --prepared runs/text --model bert_nano
                                                       the same for BERT, on the prepared text
  apps/train.py --task sst2 --weights runs/gmlp_nano-text
                                                       fine-tunes it to classify texts
  apps/train.py --task reviews.csv --weights hf://google/bert_uncased_L-4_H-256_A-4
                                                       a published BERT, on texts of your own
  apps/train.py --backend jax --devices all            all GPUs of the machine
  apps/train.py --backend jax --devices all --coordinator node0:3456 --processes 2 --process 0
                                                       the first of two machines

recipes of images: quick (12 epochs), standard (36, with MixUp and CutMix), long (300, for a GPU),
finetune (from weights to other classes), resolution (8, from weights to larger images), imagenet
(300, the gMLP paper's), airbench (16, for convnet_8_32). finetune tries a linear head on the
features and two learning rates on images held out, and takes the best; --learning-rate limits it to
one, --epochs switches the choice off, and --epochs 0 only fits the head.
recipes of texts: quick (20M tokens, for a CPU), standard (134M) and long (1.3G, both for a GPU)
pre-train; finetune (3 epochs) trains a task.
They compute in bfloat16 where that is faster, which is measured, and otherwise in float32.

A run that was stopped or killed resumes when the same command is given again, without --restart.
"""


def check(options):
    """Raises a `ValueError` if options do not fit together; adds the settings of each run."""
    from keras_gmlp.runs.folds import fold_settings

    new = options.vocabulary_size or options.cased or options.strip_accents
    if options.text:
        if not options.valid:
            raise ValueError("--text requires --valid FILE, a text that is not in it")
        options.prepared = options.prepared or "runs/text"
        require_output(options.prepared, *options.text, *options.valid, option="--prepared")
    elif new or options.tokenizer or options.valid:
        names = "--valid, --vocabulary-size, --cased, --strip-accents and --tokenizer"
        raise ValueError(f"{names} are for --text; prepared text has its tokenizer")
    if new and options.tokenizer:
        names = "--vocabulary-size, --cased and --strip-accents"
        raise ValueError(f"{names} are for a new tokenizer; leave them out, or --tokenizer")
    settings = read_settings(options)
    folds = options.folds
    options.runs = [settings] if folds is None else fold_settings(settings, folds)


def run(options):
    with joining(options):
        train_runs(options, options.runs)


def train_runs(options, runs):
    """Trains runs one after another, and reports."""
    cli.import_tensorflow()
    from keras_gmlp.programs.shared.training import introduce, report
    from keras_gmlp.runs.run import train_run
    from keras_gmlp.training.devices import agree, is_main, use_devices
    from keras_gmlp.training.precision import choose_precision
    from keras_gmlp.utils.environment import keep_compilations, keep_freed_memory

    keep_freed_memory()
    keep_compilations()
    interactive = not options.json and sys.stdout.isatty()  # shows a progress bar
    given = {
        "introduce": functools.partial(introduce, options),
        "report": (lambda text: None) if options.json else functools.partial(print, flush=True),
        "verbose": 0 if options.json else 1 if interactive else 2,
        "restart": options.restart,
    }
    export = not options.no_export and options.folds is None
    directory = runs[0].out if len(runs) == 1 else str(Path(runs[0].out).parent)
    results = []
    try:
        with use_devices(options.devices):
            if "precision" not in runs[0].changes:
                precision = choose_precision(None if options.restart else runs[0].out)
                runs = [settings.with_changes(precision=precision) for settings in runs]
            if options.text and is_main():
                prepare_text(options, runs[0])
            agree()  # the others wait
            for settings in runs:
                results.append(train_run(settings, export, **given))
    except KeyboardInterrupt:
        command = "the same command" + " without --restart" * options.restart
        raise KeyboardInterrupt(f"stopped; {command} resumes the run in {directory}.") from None
    report(options, results, directory)


def prepare_text(options, settings):
    """Encodes the text files, once."""
    from keras_gmlp.data.text.corpus import prepare_corpus
    from keras_gmlp.models.presets import TEXT_PRESETS, lookup

    known = Path(settings.prepared, "tokenizer.json")
    how = {"lowercase": not options.cased, "strip_accents": options.strip_accents}
    tokenizer = options.tokenizer or options.vocabulary_size
    if tokenizer is None:
        is_new = options.cased or options.strip_accents or not known.exists()
        usual = lookup(settings.model, TEXT_PRESETS)[1]["vocabulary_size"]
        tokenizer = usual if is_new else known
    prepare_corpus(options.text, tokenizer, settings.prepared, valid=options.valid, **how)


def devices(text):
    """Returns a number of devices from the command line, or all."""
    return text if text == "all" else int(text)


main = cli.Program("train", __doc__, USAGE, run, check, devices={"type": devices})
