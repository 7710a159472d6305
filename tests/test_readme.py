"""The documentation's Python runs, and every file it names exists."""

import ast
import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest
from own_images import replace_backbone, write_folder
from small_text import LINES

import keras_gmlp
from keras_gmlp import data
from keras_gmlp.export.writing import export
from keras_gmlp.utils import sources
from keras_gmlp.weights import pretrained
from keras_gmlp.weights.loading import load

ROOT = Path(__file__).resolve().parent.parent
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text()
    for path in (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")))
}
BLOCKS = {
    (page, place): code
    for page, text in PAGES.items()
    for place, code in enumerate(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
}
FILES = r"\b(?:apps|keras_gmlp|saved_models|docs|tests)/[\w./-]*\w"
LINKS = r"\]\(([^)#:]+)(?:#[^)]*)?\)"  # relative ones: no scheme


def run(page, place=0, **shorter):
    """Runs a page's Python block, some words of it replaced; returns the names it defines."""
    code, names = BLOCKS[page, place], {}
    for long, quick in shorter.items():
        assert long in code
        code = code.replace(long, quick)
    exec(code, names)
    return names


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    """A writable working directory with the checkout's docs and models."""
    monkeypatch.chdir(tmp_path)
    for name in ("docs", "saved_models"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


def test_stated_versions_are_what_pip_requires():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    versions = re.findall(r"Python :: (3\.\d+)", " ".join(project["classifiers"]))
    assert project["requires-python"] == f">={versions[0]}"
    stated = f"Python {versions[0]} to {versions[-2]}"  # the newest has no TensorFlow
    for page in ("README.md", "CONTRIBUTING.md", "docs/security.md"):
        assert stated in PAGES[page]
    assert f"\nversion: {keras_gmlp.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    lists = project["dependencies"], *project["optional-dependencies"].values()
    required = [requirement for group in lists for requirement in group]
    floors = re.findall(r"\| (\w+) \| ([\d.]+) \|\n", PAGES["docs/security.md"])
    assert {name for name, _ in floors} == {"pillow", "keras", "torch", "onnx"}
    for name, version in floors:
        open_ended = [r for r in required if re.match(rf"{name}\b(?![-=])(?!==)", r)]
        assert set(open_ended) == {f"{name}>={version}"}


@pytest.mark.slow
def test_training_example(workspace):
    names = run("README.md", **{"depth=4": "depth=2", "digits, 64": "digits, 32"})
    images, labels = names["digits"].test.arrays()
    found = names["model"].predict(images, verbose=0).argmax(-1)
    assert (found == labels).mean() > 0.9
    again = keras_gmlp.load_model("digits.keras")
    assert (again.predict(images, verbose=0).argmax(-1) == found).all()


def test_weights_example(monkeypatch):
    asked = []

    def load(source, preset):  # the hub's file would be one of 78 MB
        asked.append((source, preset))
        small = keras_gmlp.build("gmlp_ti16_224", input_shape=(32, 32, 3), depth=1)
        return pretrained.Pretrained(small, "gmlp_ti16_224", None, {}, source)

    monkeypatch.setattr(pretrained, "load", load)
    names = run("docs/guides/pretrained-weights.md", **{", input_shape": ", depth=1, input_shape"})
    assert names["model"].input_shape == (None, 160, 160, 3)
    assert asked == [("hf://timm/gmlp_s16_224.ra3_in1k", "gmlp_s16_224")]


@pytest.mark.eager
def test_finetuning_example(workspace, monkeypatch, capsys):
    replace_backbone(workspace / "models", monkeypatch)
    write_folder(workspace / "photos")
    names = run("docs/guides/your-images.md")
    assert names["model"].output_shape == (None, 3)
    assert names["metrics"]["directory"] == f"runs/{sources.DEFAULT_BACKBONE}-photos"
    assert "['blue', 'green', 'red']" in capsys.readouterr().out


def test_lora_example(workspace):
    write_folder(workspace / "photos")
    names = run("docs/guides/your-images.md", 1, **{"epochs=8": "epochs=1"})
    images, _ = names["photos"].test.arrays()
    again = keras_gmlp.load_model("photos.keras", compile=False)
    expected = names["model"].predict(images, verbose=0)
    assert again.predict(images, verbose=0) == pytest.approx(expected, abs=1e-3)


def test_folder_example(workspace):
    run("docs/guides/your-images.md", 2)
    found = data.load("runs/five_digits", (32, 32))
    assert found.labels == ("0", "1", "2", "3", "4")
    assert (len(found.train), len(found.test)) == (723, 178)


@pytest.mark.filterwarnings("ignore:Layer")  # those without weights, says Keras
def test_quantizing_example(workspace):
    write_folder(workspace / "tiny_imagenet")
    run("docs/guides/deploy.md")
    weights = keras_gmlp.load_model("quantized.keras").get_layer("block_0").weights
    assert "int8" in {weight.dtype for weight in weights}


def test_operators_example(workspace, capsys):
    included = ROOT / "saved_models" / sources.DEFAULT_BACKBONE / "model_features.tflite"
    (workspace / "model_int8.tflite").symlink_to(included)
    run("docs/guides/deploy.md", 1)
    assert "FULLY_CONNECTED" in ast.literal_eval(capsys.readouterr().out)


def test_classifying_example(workspace, capsys):
    run("docs/guides/deploy.md", 2)
    label, probability = ast.literal_eval(capsys.readouterr().out)[0]
    claimed = re.search(r"classify.py docs/cat.jpg .+ # cat ([\d.]+) %", PAGES["README.md"])[1]
    assert label == "cat"
    assert 100 * probability == pytest.approx(float(claimed), abs=2)  # processors round differently


@pytest.mark.slow
def test_mediapipe_example(workspace, capsys):
    pytest.importorskip("mediapipe", exc_type=ImportError)
    name = "gmlp_n4_32-cifar10"
    classifier = load(ROOT / "saved_models" / name / "model.keras")
    export(classifier.model, workspace / "runs" / name, ["mediapipe"], classifier.labels)
    run("docs/guides/deploy.md", 4)
    assert capsys.readouterr().out.startswith("cat 0.8")


def test_features_example(workspace, capsys):
    place = workspace / "runs" / "gmlp_n4_32-cifar10"
    place.mkdir(parents=True)
    features = ROOT / "saved_models" / sources.DEFAULT_BACKBONE / "model_features.tflite"
    (place / features.name).symlink_to(features)
    run("docs/guides/deploy.md", 3)
    assert capsys.readouterr().out == "(256,)\n"


def test_text_examples(workspace):
    (workspace / "runs").mkdir()
    (workspace / "runs/gmlp_nano-text").symlink_to(ROOT / "saved_models/amlp_nano-wiki")
    answers = run("docs/guides/text.md")["model"].fill_mask("It is [MASK].", top=3)
    assert [set(answer) for answer in answers] == [{"score", "token", "token_str", "sequence"}] * 3
    names = run("docs/guides/text.md", 1)
    query, notes = "lunch after rowing by the coast", names["notes"]
    found = names["text"].find_similar(names["model"], query, notes)
    assert [place for place, _ in found] == [0, 1]


@pytest.mark.eager
@pytest.mark.slow
def test_language_example(workspace):
    (workspace / "wiki").mkdir()
    for name in ("wiki/0.txt", "wiki/1.txt", "held_out.txt"):
        (workspace / name).write_text("\n".join(LINES * 80))
    shorter = {
        "steps_per_epoch=1000, epochs=3": "steps_per_epoch=1, epochs=1",
        "batch_size=64": "batch_size=8",
        "prepared.tokenizer)": "prepared.tokenizer, depth=1)",
    }
    names = run("docs/guides/text.md", 2, **shorter)
    assert names["model"].history.history["loss"][0] > 0
    assert names["classifier"].output_shape == (None, 2)


def test_every_python_block_has_a_test_above():
    places = {"docs/guides/deploy.md": 5, "docs/guides/text.md": 3, "docs/guides/your-images.md": 3}
    places |= dict.fromkeys(("README.md", "docs/guides/pretrained-weights.md"), 1)
    assert Counter(page for page, _ in BLOCKS) == places


def test_every_file_and_link_leads_to_a_file():
    assert re.findall(FILES, PAGES["README.md"])
    assert re.findall(LINKS, PAGES["README.md"])
    for page, text in PAGES.items():
        named = {ROOT / name for name in re.findall(FILES, text)}
        named |= {(ROOT / page).parent / link for link in re.findall(LINKS, text)}
        assert {path for path in named if not path.exists()} == set()


def test_readme_layout_names_every_part():
    _, layout = PAGES["README.md"].split("## Package layout")
    rows = re.findall(r"^\| (`.*?) \|", layout.split("\n## ")[0], re.MULTILINE)
    named = {name.removesuffix(".py") for row in rows for name in re.findall(r"`([\w.]+)`", row)}
    package = ROOT / "keras_gmlp"
    modules = {path.stem for path in package.glob("*.py")} - {"__init__"}
    folders = {path.parent.name for path in package.glob("*/__init__.py")}
    assert modules | folders == named
    assert len(rows) == len(named)
