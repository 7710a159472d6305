"""The option for the user's own callbacks, of the programs that train."""

import importlib
import os
import sys


def add_callback_option(parser):
    """Adds the option for the user's callbacks."""
    parser.add_argument(
        "--callback",
        action="append",
        default=[],
        metavar="MODULE:CLASS",
        dest="callbacks",
        help="a keras.callbacks.Callback, made without arguments, such as a logger in my_logger.py "
        "here: my_logger:Logger; may be repeated",
    )


def make_callbacks(options):
    """Returns the callbacks of `--callback`."""
    import keras

    callbacks = []
    for text in options.callbacks:
        name, _, attribute = text.partition(":")
        if not name or not attribute:
            raise ValueError(f"--callback {text}: expected MODULE:CLASS.")
        sys.path.insert(0, os.getcwd())  # as `python -m` does
        try:
            found = getattr(importlib.import_module(name), attribute)
        except ModuleNotFoundError as error:
            raise ValueError(
                f"--callback {text}: no module {error.name}, neither in this folder nor installed."
            ) from None
        except AttributeError:
            raise ValueError(f"--callback {text}: the module has no {attribute}.") from None
        finally:
            sys.path.pop(0)
        if not isinstance(found, type) or not issubclass(found, keras.callbacks.Callback):
            raise ValueError(f"--callback {text}: expected a subclass of keras.callbacks.Callback.")
        callbacks.append(found())
    return callbacks
