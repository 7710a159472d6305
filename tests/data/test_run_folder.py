"""The data of a run, as all programs find and divide them again."""

import dataclasses
import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest
from colours import LABELS, save_colour_model
from load_app import load_app
from PIL import Image

from keras_gmlp.comparison.plan import Plan
from keras_gmlp.data.datasets import load
from keras_gmlp.data.images.packed import pack
from keras_gmlp.data.run_folder import SAMPLES, Run
from keras_gmlp.data.text import labelled_texts
from keras_gmlp.data.text.labelled_texts import TextSource, choose_texts, open_texts
from keras_gmlp.evaluation.calibration import calibrate_run
from keras_gmlp.evaluation.labelled import LabelledImages
from keras_gmlp.export import verify
from keras_gmlp.programs.shared.training import warn_of_data
from keras_gmlp.runs.prepare import load_data
from keras_gmlp.runs.settings import RunSettings
from keras_gmlp.training.recipes import RECIPES
from keras_gmlp.training.run_directory import claim
from keras_gmlp.utils.errors import DataWarning
from keras_gmlp.utils.files import write_json

GROUPS = r"/(\d+)-"


def write_photos(root, bursts=range(9), blue=0):
    """Writes two pictures of each burst for each class, all of them different."""
    for place, label in enumerate(LABELS):
        (root / label).mkdir(parents=True, exist_ok=True)
        for burst in bursts:
            for number, name in enumerate("ab"):
                colour = (burst, 2 * place + number, blue)
                Image.new("RGB", (8, 8), colour).save(root / label / f"{burst}-{name}.png")
    return root


@pytest.fixture
def photos(tmp_path, monkeypatch):
    """The name of a folder of bursts in the current one, a project's."""
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    write_photos(tmp_path / "project" / "photos")
    return "photos"


def describe(**division):
    """Returns the settings of a run and the dict in its `recipe.json`."""
    settings = RunSettings(model="gmlp_n4_32", image_size=8, **division)
    return settings, {**settings.record(), "data": settings.data}


def begin(directory="run", **division):
    """Begins a run, as training does; returns its data."""
    settings, recipe = describe(**division)
    data = load_data(settings, (8, 8, 3))
    os.makedirs(directory, exist_ok=True)
    claim(Path(directory), recipe, RECIPES["quick"], data)
    return data


def read(split):
    """Returns the contents of the files of a split."""
    found = set()
    for path in split.paths:
        with open(path, "rb") as file:
            found.add(file.read())
    return found


DIVISIONS = [
    {},
    {"groups": GROUPS},
    {"groups": GROUPS, "validation": 0.3},
    {"folds": 3, "fold": 2, "validation": 0.2, "fraction": 0.8},
]


@pytest.mark.parametrize("division", DIVISIONS)
@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.filterwarnings("ignore::keras_gmlp.utils.errors.DataWarning")
def test_each_split_is_that_of_the_run(photos, division, recorded):
    data = begin(data=photos, **division)
    if not recorded:  # as before samples were recorded
        os.remove(f"run/{SAMPLES}")
    found = Run("run").load_images((8, 8, 3)).splits()
    assert {n: read(s) for n, s in found.items()} == {n: read(s) for n, s in data.splits().items()}
    chosen = Run("run").data(photos)
    assert len(LabelledImages(chosen[0], "train", **chosen[2])) == len(data.train)


def more(folder):
    write_photos(folder, range(20, 22), blue=9)


def fewer(folder):
    for label in LABELS:
        (folder / label / "0-a.png").unlink()


def replaced(folder):
    names = sorted(path.name for path in (folder / LABELS[0]).iterdir())
    for label in LABELS:  # each name is another picture's now
        for name in names:
            (folder / label / name).rename(folder / label / f"old {name}")
        for name, other in zip(names, names[1:] + names[:1], strict=True):
            (folder / label / f"old {name}").rename(folder / label / other)


@pytest.mark.parametrize("change", [more, fewer, replaced])
@pytest.mark.parametrize("division", DIVISIONS[:3])
@pytest.mark.filterwarnings("ignore::keras_gmlp.utils.errors.DataWarning")
def test_changed_pictures_stay_in_their_splits(photos, tmp_path, division, change):
    data = begin(data=photos, **division)
    splits = {name: read(split) for name, split in data.splits().items()}
    change(tmp_path / "project" / "photos")
    for name, split in Run("run").load_images((8, 8, 3), photos).splits().items():
        assert read(split) <= splits[name], name
        assert len(read(split)) >= len(splits[name]) - 3


def test_new_pictures_are_counted(photos, tmp_path):
    begin(data=photos)
    more(tmp_path / "project" / "photos")
    with pytest.warns(DataWarning, match="left out 12 of 66"):
        Run("run").data(photos)
    with pytest.warns(DataWarning, match="trained on 45 of these 66"):
        Run("run").data(photos, "all")


def test_run_does_not_go_on_with_other_data(photos, tmp_path):
    begin(data=photos)
    write_json("run/metrics.json", {})
    begin(data=photos)
    folder = tmp_path / "project" / "photos"
    (folder / LABELS[0]).rename(folder / "x")
    (folder / LABELS[1]).rename(folder / LABELS[0])
    (folder / "x").rename(folder / LABELS[1])
    with pytest.raises(ValueError, match="not those of the run"):
        begin(data=photos)
    settings = dataclasses.replace(describe(data=photos)[0], out="run")
    with pytest.raises(ValueError, match="not those of the run"):
        Plan([settings]).work()


def test_samples_that_a_kill_left_out_are_recorded_when_the_run_goes_on(photos, tmp_path):
    begin(data=photos)
    recorded = Run("run").samples
    (checkpoints := tmp_path / "project" / "run" / "checkpoint").mkdir()
    (checkpoints / "000001.weights.h5").touch()
    os.remove(f"run/{SAMPLES}")
    begin(data=photos)
    assert Run("run").samples == recorded


def test_pictures_are_the_same_from_any_folder(photos, tmp_path, monkeypatch):
    held_out = read(begin(data=photos, groups=GROUPS).test)
    monkeypatch.chdir(tmp_path)
    for name in (None, "project/photos", tmp_path / "project" / "photos"):
        assert read(Run("project/run").load_images((8, 8, 3), name).test) == held_out
    os.rename("project/photos", "pictures")
    assert Run("project/run").data("pictures")[1]
    assert read(Run("project/run").load_images((8, 8, 3), "pictures").test) == held_out


def test_pictures_of_another_project_are_refused(photos, tmp_path, monkeypatch):
    begin(data=photos, validation=0.3)
    write_photos(tmp_path / "other" / "photos", blue=9)
    monkeypatch.chdir(tmp_path / "other")
    run = Run("../project/run")
    assert run.data()[0] == str(tmp_path / "project" / "photos")
    shutil.rmtree(tmp_path / "project" / "photos")
    with pytest.raises(ValueError, match="does not hold"):
        run.data()
    assert not run.data(photos)[1]
    shutil.move("photos", tmp_path / "project" / "photos")  # as where its own were
    with pytest.raises(ValueError, match="does not hold"):
        run.data()


@pytest.mark.filterwarnings("default::keras_gmlp.utils.errors.DataWarning")
def test_other_run_that_was_trained_on_test_pictures_is_named(photos, capsys):
    begin("a", data=photos)
    begin("b", data=photos, groups=GROUPS)
    for run in ("a", "b"):
        save_colour_model(run)
    load_app("evaluate").main(["a", "b", "--data", photos])
    assert "b was trained on" in capsys.readouterr().err


def write_table(photos, bursts):
    rows = [
        f"{photos}/{label}/{burst}-{name}.png,{label}"
        for burst in bursts
        for label in LABELS
        for name in "ab"
    ]
    with open("table.csv", "w") as file:
        file.write("\n".join(["path,label", *rows]) + "\n")


@pytest.mark.filterwarnings("ignore::keras_gmlp.utils.errors.DataWarning")
def test_table_that_has_more_rows(photos):
    write_table(photos, range(3, 9))
    data = begin(data="table.csv", validation=0.3)
    write_table(photos, range(9))
    found = Run("run").load_images((8, 8, 3), "table.csv").splits()
    assert {n: read(s) for n, s in found.items()} == {n: read(s) for n, s in data.splits().items()}


def images(split):
    return {image.tobytes() for image in split.arrays()[0]}


@pytest.mark.filterwarnings("ignore::keras_gmlp.utils.errors.DataWarning")
def test_packed_set_that_was_packed_again(photos, tmp_path):
    pack(load(photos, (8, 8)), "packed")
    data = begin(data="packed", validation=0.3)
    assert images(Run("run").load_images((8, 8, 3)).validation) == images(data.validation)
    splits = {name: images(split) for name, split in data.splits().items()}
    shutil.rmtree("packed")
    more(tmp_path / "project" / "photos")
    pack(load(photos, (8, 8)), "packed")
    found = Run("run").load_images((8, 8, 3), "packed").splits()
    assert all(images(split) <= splits[name] for name, split in found.items())


def write_texts(name, count, first="text"):
    rows = [f"{first} number {i},{('bad', 'good')[i % 2]}" for i in range(count)]
    with open(name, "w") as file:
        file.write("\n".join(["text,label", *rows]) + "\n")


def begin_texts(**options):
    """Begins a run on texts; returns its data."""
    settings = RunSettings(weights="start", task="texts.csv", **options)
    data = open_texts(settings.text_source)
    os.mkdir("run")
    recipe = {**settings.record(), "data": data.name, "command": settings.to_dict()}
    claim(Path("run"), recipe, RECIPES["quick"], data)
    return data


@pytest.mark.filterwarnings("ignore::keras_gmlp.utils.errors.DataWarning")
def test_texts_that_came_later_are_in_no_split(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_texts("texts.csv", 40)
    data = begin_texts(validation=0.2)
    write_texts("texts.csv", 46)
    os.rename("texts.csv", "renamed.csv")
    source, own = Run("run").texts("renamed.csv")
    assert own
    with mock.patch.object(labelled_texts, "read_all_rows", side_effect=AssertionError):
        open_texts(source)  # which are read once
    for split in ("train", "validation", "test"):
        assert set(choose_texts(source, split)[0].texts) == set(getattr(data, split).texts)
    assert choose_texts(source)[2] == "test"
    with pytest.raises(ValueError, match="validation"):
        choose_texts(TextSource("renamed.csv", roles=[]), "validation")
    write_texts("texts.csv", 40, "other")
    assert not Run("run").texts("texts.csv")[1]
    with pytest.raises(ValueError, match="does not hold"):
        Run("run").texts()


@pytest.mark.parametrize("first", ["new", "text"])  # the second: copies of training texts
def test_texts_to_test_on_are_found_from_any_folder(tmp_path, monkeypatch, first):
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    write_texts("texts.csv", 20)
    write_texts("held_out.csv", 6, first)
    data = begin_texts(test="held_out.csv")
    monkeypatch.chdir(tmp_path)
    source, own = Run("project/run").texts()
    assert own
    for split in ("train", "test"):
        assert choose_texts(source, split)[0].texts == getattr(data, split).texts
    (tmp_path / "project" / "held_out.csv").rename("texts.csv")
    assert Run("project/run").texts("texts.csv")[1]


def test_other_texts_to_test_on_are_counted_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_texts("texts.csv", 20)
    data = begin_texts()
    write_texts("other.csv", 20)
    with pytest.warns(DataWarning, match=f"{len(data.train)} of these 20 "):
        assert not Run("run").texts("texts.csv", columns={"test": "other.csv"})[1]


def test_test_texts_that_are_training_texts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_texts("texts.csv", 20)
    data = open_texts(TextSource("texts.csv", {"test": "texts.csv"}))
    task = SimpleNamespace(
        domain="texts", labelled=True, headline="accuracy", find_unknown=lambda data: ""
    )
    with pytest.warns(DataWarning) as warned:
        warn_of_data(SimpleNamespace(data=data, recipe=SimpleNamespace(task=task)))
    assert "20 of 20 test texts" in str(warned[-1].message)


def test_calibration_does_not_take_training_pictures(photos, tmp_path):
    """Of a folder that was renamed, all pictures were taken for new ones."""
    data = begin(data=photos, validation=0.3)
    save_colour_model("run")
    os.rename(photos, "renamed")
    result = calibrate_run("run", "renamed", reject=None)
    assert (result["split"], result["images"]) == ("validation", len(data.validation))


def test_programs_test_on_the_images_that_the_run_held_out(photos, monkeypatch):
    held_out = read(begin(data=photos, groups=GROUPS).test)
    save_colour_model("run")
    monkeypatch.chdir("..")
    exported = mock.Mock(return_value=None)
    monkeypatch.setattr(verify, "export_run", exported)
    load_app("export").main(["project/run", "--formats", "tflite"])
    assert read(exported.call_args.args[2].test) == held_out
    evaluate = load_app("evaluate")
    options = evaluate.main.parse(["project/run/model.keras", "--data", "project/photos"])
    paths = evaluate.choose_images(options).names
    assert read(SimpleNamespace(paths=paths)) == held_out
