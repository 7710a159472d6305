"""What programs say of errors, on one line each with advice."""

import re
import sys

from keras_gmlp.utils.errors import printable, shortened

COMMAND = "keras-gmlp"  # comes with a wheel, where apps/ is missing


def one_line(error):
    """Returns an error on one printable line, with advice on missing modules."""
    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, ModuleNotFoundError):
        module = (error.name or "").partition(".")[0]
        extra = module if module in ("jax", "torch") else "train"
        text = f"{text}. Install: pip install -e '.[{extra}]'"
    return printable(name_programs(shortened(text)))


def name_programs(text):
    """Returns a text with the command's names for programs and the package, if it started this."""
    if not sys.argv[0].startswith(COMMAND):
        return text
    text = re.sub(r"(?:\.venv/bin/python )?\bapps/(\w+)\.py", rf"{COMMAND} \1", text)
    return re.sub(r"pip install -e '\.(\[\w+\])'", rf"pip install '{COMMAND}\1'", text)
