"""The frame of all programs: exit codes, one-line errors and warnings, Ctrl-C, quiet imports."""

import contextlib
import json
import logging
import os
import sys
import warnings

from keras_gmlp.programs.shared.messages import one_line
from keras_gmlp.programs.shared.parser import Parser
from keras_gmlp.tasks.registry import find_task
from keras_gmlp.utils.errors import is_of_tensorflow, one_line_warnings, printable
from keras_gmlp.utils.sources import DEFAULT_BACKBONE, FEATURES_FIRST, KINDS, find_model

FOR_THE_USER = (ValueError, TypeError, RuntimeError, OSError, ImportError, MemoryError)

# Scores that are printed in percent.
SHARES = {
    *("accuracy", "top5_accuracy", "balanced_accuracy", "calibration_error", "rejected"),
    *("mean_average_precision", "mean_f1", "exact_match", "agreement", "average_precision"),
    *("threshold", "precision", "recall", "f1"),
}


class Program:
    """A program, which is called with its arguments and returns its exit code."""

    # A `ValueError` of `check(options)` is wrong usage, one of `run(options)` a failure. `run`
    # returns the exit code, or None, which stands for 0, or 1 if it has reported an error. The
    # usage is the text that `Parser.add_options` reads with `settings`, a blank line and the end of
    # the help.
    def __init__(self, name, description, usage, run, check=None, **settings):
        self.name, self.description, self.run, self.check = name, description, run, check
        self.options, _, self.epilog = usage.partition("\n\n")
        if "exit codes" not in usage:
            self.epilog += "\nexit codes: 0 done, 1 failure, 2 wrong usage, 130 stopped with Ctrl-C"
        self.settings = settings

    def parse(self, arguments=None):
        """Returns the options, checked."""
        parser = Parser(description=self.description, epilog=self.epilog)
        parser.add_options(self.options, **self.settings)
        given = list(sys.argv[1:] if arguments is None else arguments)
        options = parser.parse_args(given)
        options.given, options.program, options.place, options.code = given, self.name, None, 0
        options.joined = False  # one of several processes
        if self.check:
            try:
                self.check(options)
            except ValueError as error:
                parser.error(str(error))
        return options

    def __call__(self, arguments=None):
        options = None

        def work():
            nonlocal options
            options = self.parse(arguments)
            code = self.run(options)
            return options.code if code is None else code

        code = guarded(self.name, work)
        if code and options and options.joined:
            os._exit(code)  # JAX would wait for the others, which may wait for this one
        return code


def guarded(name, work):
    """Runs a program; an error for the user is one line on standard error and exit code 1."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # characters that an encoding lacks
    # The notes of Pillow on odd files may be hundreds of lines for one. The filter is
    # the last in the list, so that `python -W` still shows them.
    warnings.filterwarnings("ignore", module=r"PIL\.", append=True)
    logging.getLogger("PIL").setLevel(logging.CRITICAL)
    try:
        with one_line_warnings(name, one_line):
            code = work()
            sys.stdout.flush()  # here, where a failure can still be reported
        return code
    except KeyboardInterrupt as stopped:  # its text says how to go on
        text, code = f"\n{name}: {str(stopped) or 'stopped.'}", 130
    except BrokenPipeError:  # as of `| head`
        text, code = None, 1
    except Exception as error:
        # TensorFlow's are not OSErrors even if a disk is full.
        for_the_user = isinstance(error, FOR_THE_USER) or is_of_tensorflow(error)
        if sys.flags.dev_mode or not for_the_user:
            raise
        text, code = f"{name}: {one_line(error)}", 1
    try:
        sys.stdout.flush()
    except OSError:  # discards it, or Python's last flush would show a traceback
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    if text:
        print(text, file=sys.stderr, flush=True)
    return code


@contextlib.contextmanager
def quiet():
    """Hides what native code writes to standard error."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def load_model(source, features=False, domain=None, **options):
    """Loads a model, of `"images"` or `"texts"` if asked; None is the included image model."""
    from keras_gmlp.weights.loading import load

    path, _ = find_model(source or DEFAULT_BACKBONE, FEATURES_FIRST if features else KINDS)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # without TensorFlow's notes
    with quiet():
        model = load(path, **options)
    found = find_task(model.task).domain
    if domain not in (None, found):
        raise ValueError(f"{model.path}: a model of {found}; expected a model of {domain}.")
    return model


def import_tensorflow():
    """Imports TensorFlow, if installed, without its notes."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    logging.getLogger("absl").setLevel(logging.ERROR)
    with quiet(), contextlib.suppress(ImportError):
        import tensorflow  # noqa: F401


def show_result(options, result, show=lambda result: None):
    """Prints the result of a program: as JSON, or as a function shows it."""
    if options.json:
        print(json.dumps(result))
    else:
        show(result)


def show_each(options, items, find, show):
    """Shows what a function finds for each item, or reports why not."""
    for item in items:
        try:
            found = find(item)
        except (ValueError, MemoryError) as error:
            fail(options, error)
        else:
            show(item, found)


def fail(options, error, code=1):
    """Prints an error and where it is in the input; the exit code is at least `code`."""
    place = f"{options.program}: {options.place}" if options.place else options.program
    print(f"{place}: {one_line(error)}", file=sys.stderr, flush=True)
    options.code = max(options.code, code)


def print_bars(names, shares):
    """Prints a line for each name: its probability as a number and as a bar."""
    names = list(map(printable, names))
    width = max(map(len, names))
    for name, share in zip(names, shares, strict=True):
        bar = "█" * round(30 * share)
        print(f"  {name:{width}} {100 * share:5.1f} % {bar}".rstrip())


def format_score(name, value):
    """Returns a score as text; no text for `None`."""
    if value is None:
        return ""
    if name in SHARES:
        return f"{100 * value:.2f} %"
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
