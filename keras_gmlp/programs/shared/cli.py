"""Shared parts of all programs: exit codes, one-line errors, quiet imports, common options."""

import _thread
import argparse
import contextlib
import ctypes
import errno
import logging
import os
import re
import signal
import sys
import threading
import warnings
from pathlib import Path

from keras_gmlp.utils.errors import DataWarning, OneLineParser, cut, printable
from keras_gmlp.utils.files import require_output
from keras_gmlp.utils.shipped import DEFAULT_BACKBONE

ROOT = Path(__file__).resolve().parents[3]
VENV = ROOT / ".venv"
COMMAND = "keras-gmlp"  # comes with a wheel, where apps/ is missing
FOR_THE_USER = (ValueError, TypeError, RuntimeError, OSError, ImportError, MemoryError)

# The extra of the package that installs a module. CORE comes with the package itself; all other
# modules belong to "train".
EXTRAS = {
    "huggingface_hub": "convert",
    "safetensors": "convert",
    "jax": "jax",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "onnxscript": "onnx",
    "openvino": "openvino",
    "tokenizers": "text",
    "torch": "torch",
}
CORE = ("ai_edge_litert", "keras", "keras_gmlp", "lazy_loader", "numpy", "PIL")

ENVIRONMENT = {"backend": "KERAS_BACKEND", "data_dir": "TFDS_DATA_DIR"}  # of options

ADVICE = {
    errno.ENOSPC: "free some space and give the same command again",
    errno.EDQUOT: "free some space and give the same command again",
    errno.EFBIG: "choose another disk, or raise the limit on files (ulimit -f)",
    errno.EACCES: "choose a path that you can access",
    errno.EPERM: "choose a path that you can access",
    errno.EROFS: "choose a writable path",
    errno.ENOTDIR: "a part of this path is a file",
    errno.EEXIST: "expected a folder or a new path",
}


PATHS = {"DIR", "FILE", "FOLDER", "PATH", "RUN", "SOURCE", "TEACHER"}  # in names of arguments


class Parser(OneLineParser):
    """Reads the options of a program."""

    def parse_args(self, args=None, namespace=None):
        """Reads the options, and sets the variables of `ENVIRONMENT` that Keras and TFDS read.

        An empty path, which an unset variable of a shell leaves, is wrong usage.
        """
        options = super().parse_args(args, namespace)
        for action in self._actions:
            value = getattr(options, action.dest, None)
            paths = PATHS & set(re.findall("[A-Z]+", str(action.metavar)))
            if paths and "" in (value if isinstance(value, list) else [value]):
                name = (action.option_strings or [action.metavar])[0]
                self.error(f"{name} is empty; expected {action.metavar}")
        for name, variable in ENVIRONMENT.items():
            if getattr(options, name, None):
                os.environ[variable] = getattr(options, name)
        return options

    def format_help(self):
        return name_programs(super().format_help())

    def error(self, message):
        super().error(name_programs(message))

    def check_output(self, output, *inputs):
        """Ends with exit code 2 if an output is an input or in the data; see `require_output`."""
        try:
            require_output(output, *inputs)
        except ValueError as error:
            self.error(str(error))


def guarded(name, work, only_prints=False):
    """Runs a program; an error for the user is one line on standard error and exit code 1."""
    _prepare_output()
    _silence_image_decoders()
    code = 0
    try:
        with _ctrl_c_heard(), _one_line_warnings(name):
            code = work()
            sys.stdout.flush()  # here, where a failure can still be reported
        return code
    except KeyboardInterrupt as stopped:  # its text says how to go on
        text, code = f"\n{name}: {str(stopped) or 'stopped.'}", 130
    except BrokenPipeError:  # as of `| head`
        text = None if only_prints else f"{name}: stopped; the output was closed."
        code = code if only_prints else 1
    except Exception as error:
        if sys.flags.dev_mode or not isinstance(error, (*FOR_THE_USER, *_of_tensorflow())):
            raise
        text, code = f"{name}: {one_line(error)}", 1
    _let_go_of_output()
    if text:
        print(text, file=sys.stderr, flush=True)
    return code


def one_line(error):
    """Returns an error on one printable line, with advice on system errors and missing modules."""
    if isinstance(error, ModuleNotFoundError):
        return missing(error)
    return cut(printable(name_programs(cut(_one_line(error)))))


def name_programs(text):
    """Returns a text with the command's names for programs and the package, if it started this."""
    if not sys.argv[0].startswith(COMMAND):
        return text
    text = re.sub(r"(?:\.venv/bin/python )?\bapps/(\w+)\.py", rf"{COMMAND} \1", text)
    return re.sub(r"pip install -e '\.(\[\w+\])'", rf"pip install '{COMMAND}\1'", text)


def _one_line(error):
    if isinstance(error, MemoryError):
        return f"{str(error).rstrip('.') or 'out of memory'}; close other programs."
    if not isinstance(error, OSError) or error.strerror is None:
        return " ".join(str(error).split()) or type(error).__name__
    reason = " ".join(error.strerror.split())
    reason = reason.lower() if error.strerror == os.strerror(error.errno) else reason
    place = f"{error.filename}: " if error.filename is not None else ""
    advice = ADVICE.get(error.errno)
    return f"{place}{reason}" + (f"; {advice}." if advice else ".")


def missing(error):
    """Returns how to install a missing module."""
    module = (error.name or "").partition(".")[0]
    extra = "" if module in CORE else f"[{EXTRAS.get(module, 'train')}]"
    clone = (ROOT / "pyproject.toml").is_file()
    package = f'-e "{ROOT}{extra}"' if clone else f'"{COMMAND}{extra}"'
    advice = f"{error}. Install: pip install {package}"
    if VENV.is_dir() and Path(sys.prefix).resolve() != VENV.resolve():
        python = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        advice += f", or run this with {python}"
    return advice


@contextlib.contextmanager
def quiet():
    """Hides what native code writes to standard error."""
    sys.stderr.flush()
    try:
        kept = os.dup(2)
    except OSError:  # closed
        yield
        return
    try:
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def load_classifier(source, features=False):
    """Loads a model file, a run's folder, published weights, or for None the included model."""
    from keras_gmlp.inference import images as inference
    from keras_gmlp.weights.files import HUB, is_published

    source = DEFAULT_BACKBONE if source is None else source
    if features:
        from keras_gmlp.inference.similarity import find_features

        source = str(find_features(source))
    from_hub = source.startswith(HUB)  # a download shows its progress
    with contextlib.nullcontext() if from_hub else quiet():
        if is_published(source):
            from keras_gmlp import weights

            return weights.load(source).classifier()
        return inference.load(source)


def import_tensorflow():
    """Imports TensorFlow, if installed, without its notes unless TF_CPP_MIN_LOG_LEVEL is set."""
    chosen = "TF_CPP_MIN_LOG_LEVEL" in os.environ
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    logging.getLogger("absl").setLevel(logging.ERROR)
    with contextlib.nullcontext() if chosen else quiet(), contextlib.suppress(ImportError):
        import tensorflow  # noqa: F401


@contextlib.contextmanager
def _one_line_warnings(name):
    """Prints each `DataWarning` once, as one line."""
    usual, printed = warnings.showwarning, set()

    def show(message, category, *others, **more):
        if not issubclass(category, DataWarning):
            usual(message, category, *others, **more)
        elif str(message) not in printed:
            printed.add(str(message))
            print(f"{name}: warning: {one_line(message)}", file=sys.stderr, flush=True)

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = usual


@contextlib.contextmanager
def _ctrl_c_heard():
    """Repeats a Ctrl-C that Python drops in a destructor or a callback of the garbage collector."""
    usual = sys.unraisablehook
    repeats = []

    def repeat(unraisable):
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            repeats.append(threading.Timer(0.05, _interrupt))
            repeats[-1].daemon = True
            repeats[-1].start()
        else:
            usual(unraisable)

    sys.unraisablehook = repeat
    try:
        yield
        if any(timer.is_alive() for timer in repeats):
            raise KeyboardInterrupt
    finally:
        sys.unraisablehook = usual
        for timer in repeats:
            timer.cancel()


def _interrupt():
    if hasattr(signal, "pthread_kill"):  # a real signal also ends a wait
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
    else:
        _thread.interrupt_main()


def _of_tensorflow():
    """TensorFlow's errors, which are not OSErrors even if a disk is full."""
    tensorflow = sys.modules.get("tensorflow")
    return (tensorflow.errors.OpError,) if hasattr(tensorflow, "errors") else ()


def _prepare_output():
    """Replaces missing output streams, and characters that the output's encoding lacks."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 (to the program's end)
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def _silence_image_decoders():
    """Hides the notes of Pillow and libtiff on odd files, up to hundreds of lines for one."""
    # Last in the list, so that `python -W` still shows them.
    warnings.filterwarnings("ignore", module=r"PIL\.", append=True)
    logging.getLogger("PIL").setLevel(logging.CRITICAL)
    # Not in a Pillow without libtiff, or one that hides its functions.
    with contextlib.suppress(ImportError, OSError, AttributeError):
        from PIL import _imaging

        libtiff = ctypes.CDLL(_imaging.__file__)
        libtiff.TIFFSetErrorHandler(None)
        libtiff.TIFFSetWarningHandler(None)


def _let_go_of_output():
    """Discards output that cannot be written, or Python's last flush would show a traceback."""
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def add_data_dir(parser):
    parser.add_argument(
        "--data-dir",
        metavar="DIR",
        help="folder of TensorFlow Datasets; default: $TFDS_DATA_DIR or ~/tensorflow_datasets",
    )


def image_size(text):
    """Reads the size of images, for argparse: 64, or (96, 160) of the text 96x160."""
    sides = text.split("x")
    if len(sides) > 2 or not all(side.isascii() and side.isdigit() for side in sides):
        raise argparse.ArgumentTypeError(
            f"expected PIXELS or HEIGHTxWIDTH, such as 64 or 96x160; received {text!r}"
        )
    if not all(map(int, sides)):
        raise argparse.ArgumentTypeError(f"must be at least 1; received {text}")
    return tuple(map(int, sides)) if len(sides) == 2 else int(text)


def count(text):
    """Reads a whole number of at least 1, for argparse."""
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"invalid int value: {text!r}") from None
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1; received {number}")
    return number


def both_sides(size):
    """Returns `(height, width)` of a size that `image_size` read."""
    return size if isinstance(size, tuple) else (size, size)


def add_fit(parser):
    parser.add_argument(
        "--fit",
        choices=["crop", "stretch", "pad"],
        help="how pictures of another aspect ratio become the input: crop keeps their centre, "
        "stretch scales height and width independently, pad adds black borders; default: crop, "
        "or the one that the weights or the packed set name",
    )


def add_backend(parser):
    parser.add_argument(
        "--backend",
        choices=["tensorflow", "jax", "torch"],
        help="Keras backend; default: $KERAS_BACKEND, or the setting of Keras (tensorflow)",
    )
