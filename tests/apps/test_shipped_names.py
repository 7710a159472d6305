"""Programs take included models by name, from any folder."""

import json
import shutil

import numpy as np
import pytest
from load_app import APPS, load_app
from PIL import Image

from keras_gmlp.utils import shipped

ROOT = APPS.parent
CAT = str(ROOT / "docs" / "cat.jpg")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """An empty folder, and a clone's models: an image model that programs may write to."""
    monkeypatch.setattr(shipped, "FOLDER", tmp_path / "models")
    shutil.copytree(ROOT / "saved_models" / "gmlp_n4_32-cifar10", tmp_path / "models" / "short")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")


@pytest.fixture
def photos(tmp_path):
    """A folder with two classes of the model."""
    random = np.random.default_rng(0)
    for label in ("cat", "dog"):
        (tmp_path / "photos" / label).mkdir(parents=True)
        for number in range(6):
            image = Image.fromarray(random.integers(0, 256, (32, 32, 3), "uint8"))
            image.save(tmp_path / "photos" / label / f"{number}.png")
    return str(tmp_path / "photos")


def run(capsys, app, *arguments):
    """Returns what a program prints as JSON."""
    code = load_app(app).main([*arguments, "--json"])
    output, errors = capsys.readouterr()
    assert (code, errors) == (0, "")
    return json.loads(output)


def test_images(capsys, photos):
    assert run(capsys, "classify", CAT, "--model", "short")["predictions"][0]["label"] == "cat"
    assert len(run(capsys, "similar", CAT, "--data", photos, "--model", "short")["similar"]) == 12
    report = run(capsys, "evaluate", "short", "short/model.keras", "--data", photos)
    assert [row["model"] for row in report["models"]] == ["short", "short/model.keras"]
    assert run(capsys, "convert", "short")["path"] == "runs/short/model.keras"


def test_check_data(capsys, photos):
    code = load_app("check_data").main([photos, "--model", "short", "--json"])
    report = json.loads(capsys.readouterr().out)
    assert code == (1 if any(report["findings"].values()) else 0)
    assert report["accuracy"] is not None


def test_default_backbone(capsys, photos, tmp_path):
    out = ["--out", str(tmp_path / "found"), "--json"]
    load_app("check_data").main([photos, *out])
    assert json.loads(capsys.readouterr().out)["model"] is None  # colours and edges
    (tmp_path / "models" / "short").rename(tmp_path / "models" / shipped.DEFAULT_BACKBONE)
    load_app("check_data").main([photos, *out])
    assert json.loads(capsys.readouterr().out)["model"] == shipped.DEFAULT_BACKBONE
    load_app("check_data").main([photos, *out, "--model", "none"])
    assert json.loads(capsys.readouterr().out)["model"] is None
    pictures = run(capsys, "visualize", "--only", "explain", "--image", CAT)["pictures"]
    assert pictures == [f"runs/{shipped.DEFAULT_BACKBONE}/pictures/explain.png"]
    assert run(capsys, "classify", CAT)["predictions"][0]["label"] == "cat"
    assert len(run(capsys, "similar", CAT, "--data", photos)["similar"]) == 12


def test_calibrate_changes_a_model_that_is_named(photos, capsys):
    with pytest.raises(SystemExit) as ended:
        load_app("calibrate").main(["--data", photos])
    assert ended.value.code == 2
    assert "required: RUN" in capsys.readouterr().err


@pytest.mark.parametrize("app", ["check_data", "classify", "similar", "visualize"])
def test_help_names_the_default(app, capsys):
    with pytest.raises(SystemExit):
        load_app(app).main(["--help"])
    assert f"included {shipped.DEFAULT_BACKBONE}" in " ".join(capsys.readouterr().out.split())


def test_programs_write_into_the_folder_of_a_name(capsys, photos, tmp_path):
    folder = tmp_path / "models" / "short"
    pictures = run(capsys, "visualize", "short", "--only", "explain", "--image", CAT)["pictures"]
    assert pictures == [str(folder / "pictures" / "explain.png")]
    assert run(capsys, "calibrate", "short", "--data", photos)["images"] == 12
    assert "calibration" in json.loads((folder / "metrics.json").read_text())


@pytest.mark.parametrize(
    ("app", "arguments"),
    [
        ("classify", [CAT, "--model", "shorts"]),
        ("export", ["shorts"]),
        ("calibrate", ["shorts"]),
        ("visualize", ["shorts"]),
        ("evaluate_sizes", ["shorts", "--sizes", "48"]),
        ("convert", ["shorts"]),
        ("train", ["--weights", "shorts", "--out", "out"]),
        ("train", ["--teacher", "shorts", "--out", "out"]),
        ("benchmark", ["shorts"]),
        ("classify_text", ["a text", "--model", "shorts"]),
        ("evaluate_text", ["shorts", "--data", "texts.csv"]),
    ],
)
def test_unknown_name(app, arguments, capsys):
    code = load_app(app).main(arguments) if app != "benchmark" else exit_code(app, arguments)
    assert code in (1, 2)
    error = capsys.readouterr().err.strip()
    assert "shorts" in error
    assert error.endswith("Did you mean short?")
    assert "\n" not in error


def exit_code(app, arguments):
    with pytest.raises(SystemExit) as ended:
        load_app(app).main(arguments)
    return ended.value.code
