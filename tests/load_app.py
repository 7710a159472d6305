"""The programs in apps/ as modules, so that their `main` runs in the tests' process."""

import importlib.util
import sys
from pathlib import Path

APPS = Path(__file__).resolve().parent.parent / "apps"
sys.path.append(str(APPS))  # where a program finds what it shares with the others


def load_app(name):
    spec = importlib.util.spec_from_file_location(f"app_{name}", APPS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
