"""Model cards: their text, the notes they keep, and those of the committed models."""

import ast
import json
import os
import re
import shlex
from pathlib import Path

import pytest
from load_app import load_app

from keras_gmlp.programs.shared.run_options import read_settings
from keras_gmlp.training.model_card import NOTES, model_card, write_command, write_model_card

ROOT = Path(__file__).resolve().parents[2]
COMMITTED = sorted(path.parent for path in (ROOT / "saved_models").glob("*/recipe.json"))
RECIPE = {
    "preset": "gmlp_n4_32",
    "data": "my photos",
    "image_shape": [16, 16, 1],
    "labels": ["house_cat", "dog"],
}
EXPORT = {"accuracy": 0.8392, "top1_agreement": 0.9952, "megabytes": 0.961, "latency_ms": 0.7}
METRICS = {
    "test_accuracy": 0.8387,
    "exports": {"keras": {"accuracy": 0.8387}, "tflite": EXPORT},
}


@pytest.fixture
def run(tmp_path):
    """The folder of a complete run without a card."""
    (tmp_path / "recipe.json").write_text(json.dumps(RECIPE))
    (tmp_path / "metrics.json").write_text(json.dumps(METRICS))
    return tmp_path


def test_card_explains_latency_only_if_measured(run):
    for metrics, found in (METRICS, True), ({"test_accuracy": 0.5}, False):
        write_model_card(run, metrics)
        assert ("on one thread" in (run / "README.md").read_text("utf-8")) == found


def test_rewriting_keeps_the_notes(run):
    write_model_card(run)
    card = run / "README.md"
    written = card.read_text("utf-8")
    assert written.endswith(f"\n{NOTES}\n")
    card.write_text(written + "\n## Notes\n\nMine, with <!-- notes --> in it.\n", "utf-8")
    write_model_card(run, {**METRICS, "test_accuracy": 0.5})
    assert card.read_text("utf-8") == (
        written.replace("| test accuracy | 0.8387", "| test accuracy | 0.5")
        + "\n## Notes\n\nMine, with <!-- notes --> in it.\n"
    )


COMMANDS = [
    f"--weights runs/start --recipe quick --data 'my photos' {changes}"
    for changes in (
        "",
        "--epochs 2 --batch-size 8 --learning-rate 1e-5 --seed 3 --precision float32",
        "--set optimizer=adamw --set ema=0 --set flip=0 --set stochastic_depth=0.2",
        "--freeze",
        "--teacher runs/teacher --set teacher_share=0.5 --set temperature=2",
        "--image-size 8x16 --fit pad --patch-size 2 --patch-window 6 --set-model depth=1 "
        "--set-model stem=convolutions --fraction 0.5 --validation 0.1 --groups 'burst(\\d+)'",
    )
]
COMMANDS += ["--weights runs/nano --task mine.csv --column a --column b --label c --hold-out 0.1"]


def test_command_gives_the_same_settings(monkeypatch):
    """apps/train.py parses the command back into the settings that it was made from."""
    monkeypatch.setenv("KERAS_BACKEND", os.environ["KERAS_BACKEND"])  # which `parse` changes
    train = load_app("train")
    for given in COMMANDS:
        settings = read_settings(train.main.parse([*shlex.split(given), "--out", "runs/a"]))
        command = write_command(json.loads(json.dumps({**settings.to_dict(), "backend": "torch"})))
        python, app, *arguments = shlex.split(command.replace("\\\n", ""))
        assert (python, app) == (".venv/bin/python", "apps/train.py")
        options = train.main.parse(arguments)
        assert read_settings(options) == settings
        assert (options.backend, options.out) == ("torch", "runs/a")


@pytest.mark.parametrize("directory", COMMITTED, ids=lambda path: path.name)
def test_committed_card_is_up_to_date_and_names_files_that_exist(directory):
    """Every figure is that of metrics.json; `write_model_card(directory)` writes a card again."""
    recipe = json.loads((directory / "recipe.json").read_text())
    metrics = json.loads((directory / "metrics.json").read_text())
    model = directory / "model.keras"
    size = model.stat().st_size / 1e6 if model.exists() else None
    place = directory.relative_to(ROOT).as_posix()
    card = (directory / "README.md").read_text("utf-8").partition(NOTES)
    assert "".join(card[:2]) == model_card(place, recipe, metrics, size)
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", "".join(card))
    links = [link for link in links if ":" not in link]
    assert "curves.png" in links
    assert [link for link in links if not (directory / link).exists()] == []
    named = re.findall(r"\b(?:apps|keras_gmlp|saved_models|docs|tests)/[\w./-]*\w", "".join(card))
    assert {name for name in named if not (ROOT / name).exists()} == set()


@pytest.mark.parametrize("directory", COMMITTED, ids=lambda path: path.name)
def test_committed_card_runs(directory, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    (code,) = re.findall(r"```python\n(.*?)```", (directory / "README.md").read_text(), re.DOTALL)
    exec(code, {})
    answer = ast.literal_eval(capsys.readouterr().out)
    rows = [(r["score"], r.get("label")) if isinstance(r, dict) else r[::-1] for r in answer]
    assert 1 > rows[0][0] >= rows[-1][0] > 0
    labels = directory / "labels.txt"
    if labels.exists() and "cat" in labels.read_text().splitlines():  # a class of CIFAR-10
        assert "cat" in [label for _, label in rows]
