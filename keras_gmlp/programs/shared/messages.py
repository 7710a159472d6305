"""What programs say of errors, on one line each with advice."""

import re
import sys
from pathlib import Path

from keras_gmlp.utils.errors import printable, shortened

ROOT = Path(__file__).resolve().parents[3]
COMMAND = "keras-gmlp"  # comes with a wheel, where apps/ is missing

# The extra of the package that installs some modules. CORE comes with the package itself; all other
# modules belong to "train".
EXTRAS = {
    "convert": ("huggingface_hub", "safetensors"),
    "jax": ("jax",),
    "onnx": ("onnx", "onnxruntime", "onnxscript"),
    "openvino": ("openvino",),
    "text": ("tokenizers",),
    "torch": ("torch",),
}
CORE = ("ai_edge_litert", "keras", "keras_gmlp", "lazy_loader", "numpy", "PIL")


def one_line(error):
    """Returns an error on one printable line, with advice on system errors and missing modules."""
    if isinstance(error, ModuleNotFoundError):
        return missing(error)
    if isinstance(error, MemoryError):
        text = f"{str(error).rstrip('.') or 'out of memory'}; close other programs."
    elif isinstance(error, OSError) and error.strerror is not None:
        place = f"{error.filename}: " if error.filename is not None else ""
        text = f"{place}{' '.join(error.strerror.split())}."
    else:
        text = " ".join(str(error).split()) or type(error).__name__
    return printable(name_programs(shortened(text)))


def name_programs(text):
    """Returns a text with the command's names for programs and the package, if it started this."""
    if not sys.argv[0].startswith(COMMAND):
        return text
    text = re.sub(r"(?:\.venv/bin/python )?\bapps/(\w+)\.py", rf"{COMMAND} \1", text)
    return re.sub(r"pip install -e '\.(\[\w+\])'", rf"pip install '{COMMAND}\1'", text)


def missing(error):
    """Returns how to install a missing module."""
    module = (error.name or "").partition(".")[0]
    extra = next((name for name, modules in EXTRAS.items() if module in modules), "train")
    extra = "" if module in CORE else f"[{extra}]"
    clone = (ROOT / "pyproject.toml").is_file()
    package = f'-e "{ROOT}{extra}"' if clone else f'"{COMMAND}{extra}"'
    return f"{error}. Install: pip install {package}"


def print_error(program, error):
    """Prints an error, or a note, on a line of standard error."""
    print(f"{program}: {one_line(error)}", file=sys.stderr, flush=True)
