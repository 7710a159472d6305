"""Trains language models, text classifiers and models for questions, each in one folder."""

import sys
from pathlib import Path

from keras_gmlp.programs.shared.cli import Parser, add_backend, add_data_dir
from keras_gmlp.programs.shared.processes import run_processes
from keras_gmlp.programs.shared.run_options import add_patience, add_recipe_options, read_options
from keras_gmlp.programs.shared.text_options import add_columns
from keras_gmlp.programs.shared.training import (
    add_training_options,
    finish_parsing,
    print_result,
    train_run,
    train_runs,
)

EPILOG = """\
examples:
  apps/train_text.py --text wiki/*.txt --valid held_out.txt
                                     pre-trains a nano gMLP to fill in masked tokens
  apps/train_text.py --text wiki/*.txt --valid held_out.txt --model bert_nano
                                     the same for BERT; the text is prepared once
  apps/train_text.py --task sst2 --weights runs/gmlp_nano-text
                                     fine-tunes it: sst2, mrpc, cola or another set of GLUE,
                                     or squad, which finds answers in texts
  apps/train_text.py --task sst2 --weights hf-hub:google/bert_uncased_L-4_H-256_A-4
                                     the same for a published BERT
  apps/train_text.py --task reviews.csv --weights runs/gmlp_nano-text
                                     on a CSV, TSV or JSON lines file, or a folder with one folder
                                     of text files for each class

recipes: quick (20M tokens, for a CPU), standard (134M) and long (1.3G, both for a GPU) pre-train;
finetune (3 epochs) trains a task. A text has one paragraph a line and a blank line between
documents; files may be compressed with xz.

A run that was stopped or killed resumes when the same command is given again, without --restart.
exit codes: 0 done, 1 failure, 2 wrong usage, 130 stopped with Ctrl-C
"""

FEW = 200  # test texts


def parse(arguments):
    parser = Parser(description=__doc__, epilog=EPILOG)
    pretrain = parser.add_argument_group("pre-training")
    pretrain.add_argument("--text", nargs="+", metavar="FILE", help=".txt or .txt.xz files")
    pretrain.add_argument("--valid", nargs="+", metavar="FILE", help="text to test on")
    pretrain.add_argument(
        "--prepared",
        metavar="FOLDER",
        help="where the tokens are, or go; default: runs/text. With it alone, --text is not needed "
        "again",
    )
    pretrain.add_argument(
        "--model",
        metavar="PRESET",
        default="gmlp_nano",
        help="gmlp, amlp or bert with _nano, _small, _medium, or another of keras_gmlp.text."
        "PRESETS; default: %(default)s",
    )
    pretrain.add_argument(
        "--vocabulary-size",
        type=int,
        metavar="N",
        help="of a new tokenizer; default: the preset's, 8192 for nano, 16384 for small",
    )
    pretrain.add_argument("--tokenizer", metavar="FILE", help="a tokenizer.json or a vocab.txt")
    pretrain.add_argument(
        "--cased", action="store_true", help="a new tokenizer keeps capital letters"
    )
    pretrain.add_argument(
        "--strip-accents",
        action="store_true",
        help="a new tokenizer strips the marks of letters, as BERT does; default: é is not e",
    )
    tune = parser.add_argument_group("fine-tuning")
    tune.add_argument(
        "--task", metavar="NAME|FILE|FOLDER", help="labelled texts or questions; see below"
    )
    tune.add_argument(
        "--weights",
        metavar="RUN",
        help="folder of a pre-trained model, the name of an included one, or an original BERT: "
        "hf-hub:NAME or its folder",
    )
    add_columns(tune)
    tune.add_argument(
        "--hold-out",
        type=float,
        default=0.0,
        metavar="SHARE",
        help="test on a share of the training texts instead, to choose settings",
    )
    tune.add_argument(
        "--validation",
        type=float,
        default=0.0,
        metavar="SHARE",
        help="hold a share of the training texts out, such as 0.1, and test these after each "
        "epoch; the test texts are then read at the end alone",
    )
    add_patience(tune, "texts")
    tune.add_argument("--dropout", type=float, default=0.1, help="default: %(default)s")
    add_data_dir(parser)
    parser.add_argument("--out", metavar="DIR", help="default: runs/MODEL-DATA")
    parser.add_argument("--recipe", help="default: quick, or finetune with --task")
    add_recipe_options(
        parser,
        True,
        "mask_rate=0.2, epoch_tokens=1000000, length=128, optimizer=adamw, weight_decay=0.01, "
        "ema=0.05, ...",
        "depth=4, max_length=256, gating=additive, dropout=0.1, ...",
    )
    add_backend(parser)
    add_training_options(parser)
    options = parser.parse_args(arguments)
    check(parser, options)
    return finish_parsing(parser, options)


def check(parser, options):
    """Ends with exit code 2 if the options do not fit together."""
    if options.task is not None and not options.weights:
        parser.error("--task requires --weights, the folder of a pre-trained model")
    if options.task is None and options.weights:
        parser.error("--weights requires --task, such as --task sst2")
    if options.task is None and not (options.text or options.prepared):
        parser.error("give --text FILE to pre-train, or --task NAME --weights RUN to fine-tune")
    if options.task is not None and (options.text or options.prepared):
        parser.error("--text and --prepared are for pre-training; --task fine-tunes")
    if options.task is not None and options.overrides:
        parser.error("--set-model is for pre-training; --task takes the model of its weights")
    tuning = options.column or options.label or options.test or options.hold_out
    tuning = tuning or options.validation or options.patience
    if options.task is None and tuning:
        parser.error(
            "--column, --label, --test, --hold-out, --validation and --patience require --task"
        )
    if options.patience and not options.validation:
        parser.error("--patience requires --validation, such as --validation 0.1")
    if options.text and not options.valid:
        parser.error("--text requires --valid FILE, a text that is not in it")
    new = options.vocabulary_size or options.cased or options.strip_accents
    if (new or options.tokenizer) and not options.text:
        parser.error(
            "--vocabulary-size, --cased, --strip-accents and --tokenizer are for --text; prepared "
            "text has its tokenizer"
        )
    if options.prepared and options.text:
        parser.check_output(options.prepared, *options.text, *options.valid)
    if new and options.tokenizer:
        parser.error(
            "--vocabulary-size, --cased and --strip-accents are for a new tokenizer; leave them "
            "out, or --tokenizer"
        )


def main(arguments=None):
    parser, options = parse(arguments)
    return run_processes("train_text", parser, options, list_runs, run)


def run(parser, options):
    """Trains and reports; returns the exit code."""
    results, directory = train_runs(parser, options, train)
    report(options, results[0], directory)
    return 0


def list_runs(options):
    """Returns the settings of the run that the options describe, checked, in a list."""
    from keras_gmlp.models.saved import model_path
    from keras_gmlp.weights.files import is_bert

    settings = read_settings(options)
    settings.check()
    if options.task is not None and not is_bert(settings.weights):
        model_path(settings.weights, "text")
    return [settings]


def read_settings(options):
    """Returns the settings of the run that the options describe."""
    from keras_gmlp.runs.text import FineTuningSettings, LanguageRunSettings

    kind = LanguageRunSettings if options.task is None else FineTuningSettings
    return kind.from_command(read_options(options))


def train(options, settings, callbacks):
    """Prepares the text and the model, and trains; returns the metrics."""
    from keras_gmlp.training.processes import run_once

    def warn(run):
        if options.task is not None:
            warn_of_few(run.data, settings.answers)
        warn_of_unknown(run.data, options.task is not None, settings)

    if options.text:
        run_once(lambda: prepare_text(options, settings))
    return train_run(options, settings, callbacks, introduce, warn)


def prepare_text(options, settings):
    """Encodes the text files, once."""
    from keras_gmlp.data.text.corpus import prepare_corpus
    from keras_gmlp.data.text.tokenizer import Tokenizer

    known = Path(settings.data, "tokenizer.json")
    how = {"lowercase": not options.cased, "strip_accents": options.strip_accents}
    asked = (options.cased or options.strip_accents) and known.exists()
    if asked and not Tokenizer.load(known).has_steps(**how):
        raise ValueError(
            f"{known}: is another tokenizer; choose another folder, or leave out --cased and "
            "--strip-accents to take it."
        )
    tokenizer = options.tokenizer or options.vocabulary_size
    if tokenizer is None:
        tokenizer = known if known.exists() else usual_words(settings.preset)
    prepare_corpus(options.text, tokenizer, settings.data, valid=options.valid, **how)


def usual_words(preset):
    """Returns the number of tokens in the vocabulary that a preset usually has."""
    from keras_gmlp.models.presets import TEXT_PRESETS, lookup

    return lookup(preset, TEXT_PRESETS)[1]["vocabulary_size"]


def introduce(prepared):
    """Prints what will be trained on what."""
    settings, data = prepared.settings, prepared.data
    parameters = f"{prepared.model.count_params():,} parameters"
    if hasattr(settings, "preset"):
        print(f"model  {settings.preset}, {parameters}")
        print(f"data   {data.name}, {data.train.summary()}")
        introduce_tokenizer(settings, data.tokenizer)
    else:
        print(f"model  {settings.weights}, {parameters}")
        sizes = f"{len(data.train):,} + {len(data.test):,}"
        kind = "questions" if settings.answers else f"texts in {len(data.labels)} classes"
        print(f"data   {data.name}, {sizes} {kind}")
    print(f"in     {prepared.recipe.precision}")
    print(f"to     {settings.directory}")


def introduce_tokenizer(settings, tokenizer):
    """Prints the number of tokens in the vocabulary, and whether the preset usually has another."""
    usual, advice = usual_words(settings.preset), ""
    if tokenizer.size != usual:
        advice = (
            f"; {settings.preset} usually has {usual:,}. To train that vocabulary, repeat --text "
            "and --valid with a new --prepared folder"
        )
    print(f"words  {tokenizer.size:,}, from {settings.data}/tokenizer.json{advice}")


def warn_of_few(data, answers):
    """Prints a line if the test is too small to say much."""
    samples = len(data.test)
    if answers or samples >= FEW:
        return
    error = 50 / samples**0.5
    print(
        f"train_text: warning: number of test texts: {samples:,}, so the accuracy has a standard "
        f"error of up to {error:.0f} points. Test on more if you can (--test, --hold-out).",
        file=sys.stderr,
        flush=True,
    )


def warn_of_unknown(data, tunes, settings):
    """Prints a line if the tokenizer does not know many tokens of the text."""
    from keras_gmlp.data.text.tokenizer import describe_unknown

    if tunes:
        train = data.train
        texts = [q.context for q in train[:FEW]] if settings.answers else train.texts[:FEW]
        ids = [i for e in data.tokenizer.encode_batch(texts) for i in e.ids[e.parts >= 0].tolist()]
        found = [describe_unknown(ids.count(data.tokenizer.unk_id) / max(len(ids), 1))]
    else:
        found = [corpus.warning() for corpus in (data.train, data.valid)]
    if line := next(filter(None, found), None):
        print(f"train_text: warning: {line}", file=sys.stderr, flush=True)


def report(options, metrics, directory):
    """Prints the results."""
    if "test_perplexity" in metrics:
        result = (
            f"perplexity {metrics['test_perplexity']:.2f}, "
            f"{100 * metrics['test_accuracy']:.2f} % of the masked tokens right"
        )
    elif "test_exact_match" in metrics:
        result = f"exact match {metrics['test_exact_match']:.2f} %, F1 {metrics['test_f1']:.2f} %"
    else:
        result = (
            f"test accuracy {100 * metrics['test_accuracy']:.2f} %, Matthews correlation "
            f"{metrics['test_matthews_correlation']:.3f}, F1 {metrics['test_f1']:.3f}"
        )
    one = metrics.get("test_predicted_classes") == 1
    lines = ["It predicts one class alone. Try another --seed or --learning-rate."] * one
    print_result(options, metrics, directory, result, lines)
