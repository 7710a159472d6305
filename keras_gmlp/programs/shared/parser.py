"""Options of programs, read from a text that lists them."""

import argparse
import os
import re

from keras_gmlp.programs.shared.messages import name_programs
from keras_gmlp.utils.errors import did_you_mean, printable, shortened

ENVIRONMENT = {"backend": "KERAS_BACKEND", "data_dir": "TFDS_DATA_DIR"}  # of options

# Options of several programs; a usage names them without a text.
SHARED = """\
--backend tensorflow|jax|torch  Keras backend; default: $KERAS_BACKEND, or the setting of Keras
    (tensorflow)
--data-dir DIR  folder of TensorFlow Datasets; default: $TFDS_DATA_DIR or ~/tensorflow_datasets
--fit crop|stretch|pad  how pictures of another aspect ratio become the input: crop keeps their
    centre, stretch scales height and width independently, pad adds black borders; default: crop,
    or the one that the weights or the packed set name
"""

ARGUMENT = re.compile(
    r"(?P<name>\S+)( (?P<metavar>\S+?)(:(?P<type>[a-z]+))?(=(?P<default>[^A-Z\s?*+!]+))?"
    r"(?P<mark>[?*+!]?))?"
)


class Parser(argparse.ArgumentParser):
    """Reads the options of a program; a usage error is one line, the help keeps its line breaks."""

    def __init__(self, **arguments):
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, **arguments)

    def add_options(self, text, **settings):
        """Adds the options that a text lists, each on a line that indented lines go on.

        A line is an option, or the name of an argument, then what follows it, two spaces and the
        help. What follows is METAVAR:type=default and a mark: `?` optional, `+` one or more, `*`
        any number, `!` required. Small letters are choices. A line in brackets begins a group,
        `[either]` one of which only one may be given. `settings` has further settings by name.
        """
        place = self
        for entry in re.split(r"\n(?=\S)", text.strip()):
            head, *rest = re.split(r"\s{2,}", entry.strip(), maxsplit=1)
            described = " ".join(" ".join(rest).split())
            if head == "[either]":
                place = self.add_mutually_exclusive_group()
            elif head.startswith("["):
                title = head[1:-1]
                place = self.add_argument_group(title, described or None) if title else self
            elif not rest and (shared := re.search(rf"^{head} .*(\n .*)*", SHARED, re.M)):
                self.add_options(shared[0])
            else:
                _add_option(place, head, described, settings)

    def parse_args(self, args=None, namespace=None):
        """Reads the options, and sets the variables of `ENVIRONMENT` that Keras and TFDS read."""
        options = super().parse_args(args, namespace)
        for name, value in vars(options).items():
            if "" in (value if isinstance(value, list) else [value]):
                self.error(f"{name} is empty; expected a value (is a variable of the shell unset?)")
        for name, variable in ENVIRONMENT.items():
            if getattr(options, name, None):
                os.environ[variable] = getattr(options, name)
        return options

    def format_help(self):
        return name_programs(super().format_help())

    def error(self, message):
        unknown = re.match(r"unrecognized arguments: (?:.*? )?(--[\w-]+)", message)
        hint = did_you_mean(unknown[1], self._option_string_actions, str) if unknown else ""
        message = printable(" ".join(f"{message}.{hint}".split() if hint else message.split()))
        self.exit(2, f"{self.prog}: error: {shortened(name_programs(message))}\n")


def _add_option(place, head, described, settings):
    """Adds one option to a parser or to a group of it; see `Parser.add_options`."""
    parts = ("name", "metavar", "type", "default", "mark")
    name, metavar, kind, default, mark = ARGUMENT.fullmatch(head).group(*parts)
    given = {"help": described or None}
    if metavar is None:
        given["action"] = "store_true"
    elif metavar.islower():
        given["choices"] = metavar.split("|")
    else:
        given["metavar"] = metavar
    if kind:
        given["type"] = TYPES[kind]
    if default:
        given |= {"default": default, "help": f"{described}; default: {default}".lstrip("; ")}
    repeated = {"action": "append", "default": []} if name.startswith("-") else {"nargs": "*"}
    marks = {"?": {"nargs": "?"}, "+": {"nargs": "+"}, "*": repeated, "!": {"required": True}}
    given |= marks.get(mark, {})
    place.add_argument(name, **{**given, **settings.get(name.lstrip("-").replace("-", "_"), {})})


def image_size(text):
    """Reads the size of images, for argparse: 64, or (96, 160) of the text 96x160."""
    if not re.fullmatch("[1-9][0-9]*(x[1-9][0-9]*)?", text):
        raise argparse.ArgumentTypeError(
            f"expected PIXELS or HEIGHTxWIDTH, such as 64 or 96x160; received {text!r}"
        )
    sides = tuple(map(int, text.split("x")))
    return sides if len(sides) == 2 else sides[0]


def count(text):
    """Reads a whole number of at least 1, for argparse."""
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1; received {text}")
    return int(text)


TYPES = {"int": int, "float": float, "count": count, "size": image_size}


def both_sides(size):
    """Returns `(height, width)` of a size that `image_size` read."""
    return size if isinstance(size, tuple) else (size, size)
