"""The frame of all programs: exit codes, one-line errors and warnings, Ctrl-C, quiet imports."""

import contextlib
import json
import logging
import os
import sys
import warnings

from keras_gmlp.programs.shared.messages import one_line, print_error
from keras_gmlp.programs.shared.parser import Parser
from keras_gmlp.tasks.registry import find_task
from keras_gmlp.utils.errors import is_of_tensorflow, one_line_warnings, printable
from keras_gmlp.utils.files import require_output
from keras_gmlp.utils.sources import DEFAULT_BACKBONE, FEATURES_FIRST, HUB, KINDS, find_model

FOR_THE_USER = (ValueError, TypeError, RuntimeError, OSError, ImportError, MemoryError)


class UsageError(Exception):
    """Raised for wrong usage, which ends a program with exit code 2 and one line."""


@contextlib.contextmanager
def usage_errors():
    """Turns a `ValueError` about the options into a `UsageError`."""
    try:
        yield
    except ValueError as error:
        raise UsageError(error) from None


def check_output(output, *inputs, option="--out"):
    """Raises a `UsageError` if an output is an input or in the data; see `require_output`."""
    with usage_errors():
        require_output(output, *inputs, option=option)


class Program:
    """A program, which is called with its arguments and returns its exit code."""

    # `check(options)` raises a `UsageError` before `run(options)` starts. `run` returns the exit
    # code, or None, which stands for 0, or 1 if it has reported an error. The usage is the text
    # that `Parser.add_options` reads with `settings`, a blank line and the end of the help.
    def __init__(self, name, description, usage, run, check=None, **settings):
        self.name, self.description, self.run, self.check = name, description, run, check
        self.options, _, self.epilog = usage.partition("\n\n")
        if "exit codes" not in usage:
            self.epilog += "exit codes: 0 done, 1 failure, 2 wrong usage, 130 stopped with Ctrl-C\n"
        self.only_prints = settings.pop("only_prints", False)  # a closed output is not an error
        self.start, self.settings = settings.pop("start", None), settings  # in place of `guarded`

    def parse(self, arguments=None):
        """Returns the options, checked."""
        self.parser = Parser(description=self.description, epilog=self.epilog)
        self.parser.add_options(self.options, **self.settings)
        given = list(sys.argv[1:] if arguments is None else arguments)
        options = self.parser.parse_args(given)
        options.given, options.program, options.place, options.code = given, self.name, None, 0
        if self.check:
            with self._usage():
                self.check(options)
        return options

    def __call__(self, arguments=None):
        options = self.parse(arguments)

        def work():
            with self._usage():
                code = self.run(options)
            return options.code if code is None else code

        if self.start:
            return self.start(self.name, work, options)
        return guarded(self.name, work, self.only_prints)

    @contextlib.contextmanager
    def _usage(self):
        """Ends the program with exit code 2 and one line if its usage is wrong."""
        try:
            yield
        except UsageError as error:
            self.parser.error(str(error))


def guarded(name, work, only_prints=False):
    """Runs a program; an error for the user is one line on standard error and exit code 1."""
    _prepare_output()
    code = 0
    try:
        with one_line_warnings(name, one_line):
            code = work()
            sys.stdout.flush()  # here, where a failure can still be reported
        return code
    except KeyboardInterrupt as stopped:  # its text says how to go on
        text, code = f"\n{name}: {str(stopped) or 'stopped.'}", 130
    except BrokenPipeError:  # as of `| head`
        text = None if only_prints else f"{name}: stopped; the output was closed."
        code = code if only_prints else 1
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
    from_hub = str(path).startswith(HUB)  # a download shows its progress
    with contextlib.nullcontext() if from_hub else quiet():
        model = load(path, **options)
    found = find_task(model.task).domain
    if domain not in (None, found):
        raise ValueError(f"{model.path}: a model of {found}; expected a model of {domain}.")
    return model


def import_tensorflow():
    """Imports TensorFlow, if installed, without its notes unless TF_CPP_MIN_LOG_LEVEL is 0 or 1."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    shows_notes = os.environ["TF_CPP_MIN_LOG_LEVEL"] in ("0", "1")
    logging.getLogger("absl").setLevel(logging.ERROR)
    with contextlib.nullcontext() if shows_notes else quiet(), contextlib.suppress(ImportError):
        import tensorflow  # noqa: F401


def _prepare_output():
    """Replaces characters that an encoding lacks; silences image decoders."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    # The notes of Pillow on odd files may be hundreds of lines for one. The filter is
    # the last in the list, so that `python -W` still shows them.
    warnings.filterwarnings("ignore", module=r"PIL\.", append=True)
    logging.getLogger("PIL").setLevel(logging.CRITICAL)


def show_result(options, result, show=lambda result: None):
    """Prints the result of a program: as JSON, or as a function shows it."""
    if options.json:
        print(json.dumps(result))
    else:
        show(result)


def show_each(options, items, find, show):
    """Shows what a function finds for each item, or reports why not."""
    with contextlib.suppress(BrokenPipeError):  # stops quietly when the reader, such as head, ends
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
    print_error(place, error)
    options.code = max(options.code, code)


def print_bars(names, shares):
    """Prints a line for each name: its probability as a number and as a bar."""
    names = list(map(printable, names))
    width = max(map(len, names))
    for name, share in zip(names, shares, strict=True):
        bar = "█" * round(30 * share)
        print(f"  {name:{width}} {100 * share:5.1f} % {bar}".rstrip())
