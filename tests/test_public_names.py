"""Every public name resolves, in the checkout and in an installed wheel."""

import importlib
import json
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from other_backend import run_under

import keras_gmlp

ROOT = Path(__file__).resolve().parent.parent
DOORS = [
    "keras_gmlp",
    *(f"keras_gmlp.{module.name}" for module in pkgutil.iter_modules(keras_gmlp.__path__)),
]
# Runs outside the checkout, with the folder of the installed wheel ahead of everything else.
RESOLVE = """
import importlib, json, sys
from importlib.resources import files

target, *doors = sys.argv[1:]
sys.path.insert(0, target)
modules = [importlib.import_module(door) for door in doors]
names = [f"{m.__name__}.{n}" for m in modules for n in getattr(m, "__all__", ())
         if getattr(m, n, None) is not None]
files_used = [m.__file__ for n, m in list(sys.modules.items()) if n.split(".")[0] == "keras_gmlp"]
labels = files("keras_gmlp.weights").joinpath("imagenet_classes.txt").read_text().splitlines()
print(json.dumps({"names": names, "files": files_used, "labels": len(labels)}))
"""


def public_names():
    """The names in `__all__` of the package and of each part, with their module."""
    return [
        f"{door}.{name}"
        for door in DOORS
        for name in getattr(importlib.import_module(door), "__all__", ())
    ]


def test_every_name_resolves():
    for path in public_names():
        module, _, name = path.rpartition(".")
        assert getattr(importlib.import_module(module), name) is not None, path


def test_package_declares_its_names():
    assert set(dir(keras_gmlp)) >= set(keras_gmlp.__all__)
    assert {"gMLP", "build", "train", "load_model", "PRESETS", "RECIPES"} <= set(keras_gmlp.__all__)


# The user's first lines: Keras first, Keras later, and a part of ours that imports Keras.
FIRST_LINES = [
    "import keras, keras_gmlp; keras.saving.load_model('{model}')",
    "import keras_gmlp, keras",
    "import keras_gmlp; keras_gmlp.text.build; import keras",
]


@pytest.mark.parametrize("lines", FIRST_LINES)
def test_keras_knows_every_class_after_the_first_lines(lines):
    pattern = re.compile(r"register_keras_serializable\(\"keras_gmlp\"\)\n(?:class|def) (\w+)")
    sources = [path.read_text() for path in (ROOT / "keras_gmlp").rglob("*.py")]
    declared = {f"keras_gmlp>{name}" for source in sources for name in pattern.findall(source)}
    assert len(declared) > 30
    model = ROOT / "saved_models" / "gmlp_n4_32-cifar10" / "model.keras"
    program = lines.format(model=model) + "; print(*keras.saving.get_custom_objects())"
    assert declared <= set(run_under("numpy", program).split())  # the quickest to start


def test_the_package_alone_reaches_every_part_and_imports_little():
    assert {door.partition(".")[2] for door in DOORS[1:]} <= set(keras_gmlp.__all__)
    assert all(getattr(keras_gmlp, name) is not None for name in keras_gmlp.__all__)
    frameworks = {"keras", "numpy", "tensorflow", "jax", "torch"}
    program = f"import sys, keras_gmlp; print({frameworks} & set(sys.modules))"
    assert run_under("torch", program) == "set()\n"


def test_train_is_the_function():
    module = importlib.import_module("keras_gmlp.training.train")
    assert keras_gmlp.train is module.train


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = keras_gmlp.no_such_name


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel, built from a copy so that the checkout stays clean."""
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, source)
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "keras_gmlp", source / "keras_gmlp", ignore=ignore)
    pip("wheel", "--no-build-isolation", "--wheel-dir", source / "dist", source)
    (built,) = (source / "dist").glob("*.whl")
    return built


def pip(command, *arguments):
    """Runs pip without dependencies and without a network."""
    flags = ["--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]
    done = subprocess.run(
        [sys.executable, "-m", "pip", command, *flags, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """A folder in which the wheel is installed."""
    target = tmp_path_factory.mktemp("installed")
    pip("install", "--target", target, wheel)
    return target


def test_wheel_holds_the_package_alone(wheel):
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    package = ROOT / "keras_gmlp"
    files = [*package.rglob("*.py"), *package.rglob("*.txt")]
    assert packed == {path.relative_to(ROOT).as_posix() for path in files}


@pytest.mark.slow
def test_installed_wheel_resolves_every_public_name(installed, tmp_path):
    output = subprocess.run(
        [sys.executable, "-I", "-c", RESOLVE, str(installed), *DOORS],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    found = json.loads(output)
    assert found["names"] == public_names()
    assert all(Path(path).is_relative_to(installed) for path in found["files"])
    assert found["labels"] == 1000


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
            env={**os.environ, "PYTHONPATH": paths},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    cat, model = ROOT / "docs/cat.jpg", ROOT / "saved_models/gmlp_conv_n4_32-cifar10/model.tflite"
    code, output, errors = command("classify", cat, "--model", model, "--json")
    assert (code, errors) == (0, "")
    assert json.loads(output)["predictions"][0]["label"] == "cat"
    # Without the models and the page of a clone, and without a backend: one line each.
    for arguments, reason in (
        (["classify", cat], "the included models are not in this installation"),
        (["serve"], "serve: the page is not in this installation"),
        (
            ["classify", cat, "--model", ROOT / "saved_models/gmlp_n4_32-cifar10/model.keras"],
            "such as pip install 'keras-gmlp[torch]'",
        ),
    ):
        code, output, errors = command(*arguments)
        assert (code, output, errors.count("\n")) == (1, "", 1), errors
        assert reason in errors
