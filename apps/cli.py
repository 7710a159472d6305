"""What all apps share: exit codes, one-line errors, quiet imports, common options."""

import _thread
import contextlib
import errno
import logging
import os
import signal
import sys
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
FOR_THE_USER = (ValueError, TypeError, RuntimeError, OSError, ImportError)
# The extra of the package that brings a module. Those of no extra come with the package itself;
# every other module is of training.
EXTRAS = {
    "huggingface_hub": "convert",
    "safetensors": "convert",
    "jax": "jax",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "onnxscript": "onnx",
    "torch": "torch",
}
CORE = ("ai_edge_litert", "keras", "keras_gmlp", "lazy_loader", "numpy", "PIL")
ADVICE = {
    errno.ENOSPC: "free some space and give the same command again",
    errno.EDQUOT: "free some space and give the same command again",
    errno.EACCES: "choose a place that you may use",
    errno.EPERM: "choose a place that you may use",
    errno.EROFS: "choose a place that can be written to",
    errno.ENOTDIR: "a part of this path is a file",
    errno.EEXIST: "expected a folder, or a path where nothing is yet",
}


def guarded(name, work, only_prints=False):
    """Does a program's work and tells how it ended.

    Args:
        name: of the program, with which its errors begin.
        work: function without arguments that returns an exit code. What it raises for its user is
            one line: ValueError, TypeError, RuntimeError, OSError, ImportError, TensorFlow's own;
            the text of a KeyboardInterrupt says how to go on. `python -X dev` shows the traceback.
        only_prints: of a program that leaves nothing but its output: a reader who closes the pipe
            (`| head`) has had enough, and that is no error.

    Returns:
        The exit code: `work`'s, 1 after an error, 130 after Ctrl-C.
    """
    _prepare_output()
    code = 0
    try:
        with _ctrl_c_heard():
            code = work()
            sys.stdout.flush()  # here, where a failure can still be told
        return code
    except KeyboardInterrupt as stopped:
        text, code = f"\n{name}: {str(stopped) or 'stopped.'}", 130
    except BrokenPipeError:
        text = None if only_prints else f"{name}: stopped; nobody reads the output any more."
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
    """An error's text on one line, with advice where the system or a missing module is at fault."""
    if isinstance(error, ModuleNotFoundError):
        return missing(error)
    if not isinstance(error, OSError) or error.strerror is None:
        return " ".join(str(error).split()) or type(error).__name__
    reason = " ".join(error.strerror.split())  # the system's, or a library's with a path in it
    reason = reason.lower() if error.strerror == os.strerror(error.errno) else reason
    place = f"{error.filename}: " if error.filename is not None else ""
    advice = ADVICE.get(error.errno)
    return f"{place}{reason}" + (f"; {advice}." if advice else ".")


def missing(error):
    """What to do about a module that cannot be imported."""
    module = (error.name or "").partition(".")[0]
    extra = "" if module in CORE else f"[{EXTRAS.get(module, 'train')}]"
    advice = f'{error}. Install: pip install -e "{ROOT}{extra}"'
    if VENV.is_dir() and Path(sys.prefix).resolve() != VENV.resolve():
        python = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        advice += f", or run this with {python}"
    return advice


@contextlib.contextmanager
def quiet():
    """Keeps the runtimes' notes about themselves, written below Python, off standard error."""
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


def import_tensorflow():
    """Imports TensorFlow, where it is, without its notes and its data sets' to their developers.

    Who has set TF_CPP_MIN_LOG_LEVEL sees what that lets through.
    """
    chosen = "TF_CPP_MIN_LOG_LEVEL" in os.environ
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    logging.getLogger("absl").setLevel(logging.ERROR)
    with contextlib.nullcontext() if chosen else quiet(), contextlib.suppress(ImportError):
        import tensorflow  # noqa: F401


@contextlib.contextmanager
def _ctrl_c_heard():
    """Repeats a Ctrl-C that came while Python could not let it through.

    In a callback of the garbage collector, as JAX has one, or in a destructor, an exception is
    reported and dropped.
    """
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
    if hasattr(signal, "pthread_kill"):  # a signal proper also ends a wait
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
    else:
        _thread.interrupt_main()


def _of_tensorflow():
    """TensorFlow's errors, which are no OSErrors even where a disk is full."""
    tensorflow = sys.modules.get("tensorflow")
    return (tensorflow.errors.OpError,) if hasattr(tensorflow, "errors") else ()


def _prepare_output():
    """Gives what is printed a place to go: a program may start without one, or with another code
    page than its text."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 (to the program's end)
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def _let_go_of_output():
    """Where standard output fails, so would Python's last flush of it, with a traceback."""
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
        help="where TensorFlow Datasets keeps its sets; default: "
        "$TFDS_DATA_DIR or ~/tensorflow_datasets",
    )


def add_backend(parser):
    parser.add_argument(
        "--backend",
        choices=["tensorflow", "jax", "torch"],
        help="of Keras; default: $KERAS_BACKEND, or what Keras is set to, tensorflow at first",
    )


def choose_backend(options):
    """Has Keras take the backend that was asked for; before anything imports Keras."""
    if options.backend:
        os.environ["KERAS_BACKEND"] = options.backend
