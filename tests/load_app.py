"""The programs, whose `main` runs in the tests' process."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
APPS = ROOT / "apps"


def load_app(name):
    """Returns a program's module, a new one, so that a test may replace parts of it."""
    (path,) = (ROOT / "keras_gmlp" / "programs").rglob(f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"app_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
