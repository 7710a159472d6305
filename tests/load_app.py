"""The programs as modules of their own, so that their `main` runs in the tests' process."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
APPS = ROOT / "apps"
PROGRAMS = ROOT / "keras_gmlp" / "programs"


def load_app(name):
    (path,) = [*PROGRAMS.glob(f"{name}.py"), *PROGRAMS.glob(f"shared/{name}.py")]
    spec = importlib.util.spec_from_file_location(f"app_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
