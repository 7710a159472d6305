"""One-line errors in place of a library's long report."""

import contextlib
import re
import signal
import sys
import textwrap
import warnings

LONGEST = 2000  # characters of a message

# As PyTorch, TensorFlow, ONNX Runtime and C++ report it.
_OUT_OF_MEMORY = re.compile(
    r"(not enough|can't allocate|failed to allocate) memory|out of memory|OOM when|bad_alloc", re.I
)

SPACES_AND_JOINERS = "\xa0\u200c\u200d\u202f\u3000"  # in the names and texts of many languages


class DataWarning(UserWarning):
    """Warns of what is left out of a data set or looks wrong in it; programs print one line."""


def warn(text):
    """Issues a `DataWarning`."""
    warnings.warn(DataWarning(text), stacklevel=2)


@contextlib.contextmanager
def one_line_warnings(name, write):
    """Prints each `DataWarning` once, as `write` returns it, after the program's name."""
    usual, printed = warnings.showwarning, set()

    def show(message, category, *others, **more):
        if not issubclass(category, DataWarning):
            usual(message, category, *others, **more)
        elif str(message) not in printed:
            printed.add(str(message))
            print(f"{name}: warning: {write(message)}", file=sys.stderr, flush=True)

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = usual


@contextlib.contextmanager
def one_line_errors():
    """Turns errors of TensorFlow inside `fit`, `evaluate` or a data set into one line."""
    try:
        yield
    except Exception as caught:
        error, hidden = caught, caught.__context__
        # The clean-up of Keras' `fit` on JAX hides the original error.
        if hidden and repr(caught) == "TypeError(\"'NoneType' object is not callable\")":
            error = hidden
        if not is_of_tensorflow(error):
            if error is caught:
                raise
            raise error from None
        import tensorflow as tf

        if isinstance(error, tf.errors.ResourceExhaustedError):
            raise RuntimeError(f"out of memory; lower batch_size ({first_line(error)}).") from None
        from_python = re.search(r"ValueError: (.+)", error.message)
        if not from_python:
            raise ValueError(f"TensorFlow failed: {first_line(error)}") from None
        raise ValueError(from_python[1]) from None


@contextlib.contextmanager
def naming_errors(path):
    """Adds the path of a file to a `ValueError` that does not name it."""
    try:
        yield
    except ValueError as error:
        place = "" if str(path) in str(error) else f"{path}: "
        raise ValueError(f"{place}{error}") from None


def is_of_tensorflow(error):
    """Returns whether an error is one of TensorFlow's, which need not be installed."""
    errors = getattr(sys.modules.get("tensorflow"), "errors", None)
    return errors is not None and isinstance(error, errors.OpError)


def why_ended(code, log):
    """Returns why a process failed: the signal that ended it, or the last line of its log."""
    if code < 0:
        name = signal.Signals(-code).name
        return f"ended by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")
    lines = log.strip().splitlines()
    return lines[-1] if lines else f"exit code {code}"


def is_out_of_memory(error):
    """Returns whether a library ran out of memory, whatever class of error it raises."""
    return isinstance(error, MemoryError) or bool(_OUT_OF_MEMORY.search(str(error)))


def first_line(error, most=200):
    """Returns the first line of an error's text, cut; the name of its class if it has no text."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return shortened(lines[0], most)


def printable(text):
    """Returns a text on one line, with escapes for characters that could change the terminal."""
    text = str(text)
    if text.isprintable():  # in a moment, also of megabytes
        return text
    return "".join(
        c if c.isprintable() or c in SPACES_AND_JOINERS else c.encode("unicode_escape").decode()
        for c in text
    )


def check_ranges(settings, ranges):
    """Raises a `ValueError` for a setting out of range, given tests and their words by name."""
    for name, (fits, expected) in ranges.items():
        value = getattr(settings, name)
        if value is not None and not fits(value):
            raise ValueError(f"{name} must be {expected}; received {value}.")


def require_one_of(name, value, choices):
    """Raises a `ValueError` if the value of an argument is not among its choices."""
    if value not in list(choices):
        known = ", ".join(map(str, choices))
        near = did_you_mean(value, list(map(str, choices)))
        raise ValueError(f"{name} must be one of {known}; received {value!r}.{near}")


def did_you_mean(name, known, write=repr, most=1, cutoff=0.6):
    """Returns a hint at the nearest of the known names; no text if none is near."""
    import difflib  # here, because only mistakes need it

    near = difflib.get_close_matches(str(name), known, most, cutoff)
    return f" Did you mean {' or '.join(map(write, near))}?" if near else ""


def first_of(names, most, word="and"):
    """Returns the first names as text, and how many more there are."""
    more = f" {word} {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def shortened(text, width=LONGEST):
    """Returns a text on one line of limited width, cut between words if it has several."""
    text = text[: 4 * width]  # of megabytes
    short = textwrap.shorten(text, width, placeholder=" ...")
    return short if short.strip(". ") else text[:width]
