"""The package declares its names, and a wheel holds all that it needs."""

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from other_backend import run_under

import keras_gmlp

ROOT = Path(__file__).resolve().parent.parent


def test_package_declares_its_names():
    assert set(dir(keras_gmlp)) >= set(keras_gmlp.__all__)
    assert {"gMLP", "build", "train", "load_model", "PRESETS", "RECIPES"} <= set(keras_gmlp.__all__)
    assert keras_gmlp.train is importlib.import_module("keras_gmlp.training.train").train


# A user's first lines: a part of ours imports Keras.
FIRST_LINES = """
import sys
import keras_gmlp
assert not {"keras", "numpy", "tensorflow", "jax", "torch"} & set(sys.modules)
keras_gmlp.text.build
import keras
keras.saving.load_model(sys.argv[1])
print(*keras.saving.get_custom_objects())
"""


def test_the_package_imports_little_and_registers_every_class_with_keras():
    pattern = re.compile(r"register_keras_serializable\(\"keras_gmlp\"\)\n(?:class|def) (\w+)")
    sources = [path.read_text() for path in (ROOT / "keras_gmlp").rglob("*.py")]
    declared = {f"keras_gmlp>{name}" for source in sources for name in pattern.findall(source)}
    assert len(declared) > 30
    model = ROOT / "saved_models" / "gmlp_n4_32-cifar10" / "model.keras"
    assert declared <= set(run_under("numpy", FIRST_LINES, model).split())  # the quickest to start


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with an installed wheel, built from a copy so that the checkout stays clean."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("installed")
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, source)
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "keras_gmlp", source / "keras_gmlp", ignore=ignore)
    flags = ["--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]
    for command in (
        ["wheel", "--no-build-isolation", "--wheel-dir", target, source],
        ["install", "--no-compile", "--target", target, "--find-links", target, "keras-gmlp"],
    ):
        done = subprocess.run([sys.executable, "-m", "pip", command[0], *flags, *command[1:]])
        assert done.returncode == 0
    next(target.glob("*.whl")).unlink()
    return target


def test_wheel_holds_the_package_alone(installed):
    package = ROOT / "keras_gmlp"
    files = [path for kind in ("py", "pyi", "txt", "typed") for path in package.rglob(f"*.{kind}")]
    packed = [path for path in (installed / "keras_gmlp").rglob("*") if path.is_file()]
    assert {path.relative_to(installed) for path in packed} == {
        path.relative_to(ROOT) for path in files
    }
    assert {path.name.partition("-")[0] for path in installed.iterdir()} == {"bin", "keras_gmlp"}


# Hides what the extras install, in every Python that the folder's command starts.
CORE_ONLY = """
import sys
class Hidden:
    def find_spec(name, path=None, target=None):
        if name in ("tensorflow", "torch", "jax", "tokenizers", "sklearn", "matplotlib"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hidden)
"""


def test_command_of_the_wheel_needs_the_core_dependencies_alone(installed, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(CORE_ONLY)
    paths = os.pathsep.join([str(tmp_path), str(installed)])

    def command(*arguments):
        done = subprocess.run(
            [installed / "bin" / "keras-gmlp", *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": paths, "KERAS_BACKEND": "torch"},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    cat, model = ROOT / "docs/cat.jpg", ROOT / "saved_models/gmlp_conv_n4_32-cifar10/model.tflite"
    code, output, errors = command("classify", cat, "--model", model, "--json")
    assert (code, errors) == (0, "")
    assert json.loads(output)["predictions"][0]["label"] == "cat"
    # Without the page of a clone, and without a backend: one line each.
    for arguments, reason in (
        (["serve"], "not installed"),
        (
            ["classify", cat, "--model", ROOT / "saved_models/gmlp_n4_32-cifar10/model.keras"],
            "keras-gmlp[torch]",
        ),
    ):
        code, output, errors = command(*arguments)
        assert (code, output, errors.count("\n")) == (1, "", 1), errors
        assert reason in errors
