"""A fine-tuning chooses its settings on held-out images, and gives the same after a kill."""

import dataclasses
import json
import math
import time
from types import SimpleNamespace

import numpy as np
import pytest
from own_images import write_folder, write_start

import keras_gmlp
from keras_gmlp import runs
from keras_gmlp.data import ArraySplit
from keras_gmlp.runs import DataSettings, ModelSettings, RunSettings, choosing
from keras_gmlp.runs.choice import HEAD, Choice, choose_best
from keras_gmlp.runs.choosing import Budget
from keras_gmlp.training.checkpoints import RunCheckpoint
from keras_gmlp.training.settings import write_command


class Kill(BaseException):
    """Nothing catches it."""


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """The path of the weights and that of the folder."""
    place = tmp_path_factory.mktemp("own")
    return write_start(place / "start.keras"), write_folder(place / "photos")


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(choosing, "plan", lambda images: {"epochs": 2, "batch_size": 8})


def make_settings(places, directory, data=None, **changes):
    weights, folder = places
    changes = {"precision": "float32", **changes}
    model = ModelSettings(weights=weights)
    return RunSettings(model, data or folder, changes=changes, directory=str(directory))


def read(directory, name):
    return json.loads((directory / name).read_text())


@pytest.fixture(scope="module")
def chosen(places, tmp_path_factory):
    """The folder of a complete run."""
    directory = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choosing, "plan", lambda images: {"epochs": 2, "batch_size": 8})
        runs.train_run(make_settings(places, directory), export=False, verbose=0)
    return directory


def test_the_candidates_are_recorded(chosen):
    recipe, metrics = read(chosen, "recipe.json"), read(chosen, "metrics.json")
    choice = recipe["choice"]
    assert (choice["images"], choice["held_out"]) == (12, True)
    names = [row["name"] for row in choice["candidates"]]
    assert names == [HEAD, "all layers, rate 0.001", "all layers, rate 0.0003"]
    best = choose_best(choice["candidates"])
    assert recipe["epochs"] == best.get("best_epoch", 0) == metrics["epochs"]
    # A trained candidate has its fitted head, which the run continues from.
    assert best["fit_head"] > 0
    assert recipe["fit_head"] == (0 if best["epochs"] else best["fit_head"])
    assert [row["name"] for row in metrics["candidates"]] == names
    assert not (chosen / "candidates").exists()
    assert "12 held-out training images chose the settings" in (chosen / "README.md").read_text()


def test_a_complete_run_is_loaded_and_its_command_repeats_it(places, chosen):
    lines = []
    run = runs.choose(runs.prepare(make_settings(places, chosen)), report=lines.append)
    assert lines == []
    assert run.train(verbose=0) == read(chosen, "metrics.json")
    recipe = read(chosen, "recipe.json")
    command = write_command(recipe)
    assert "--recipe finetune" in command
    trained = bool(choose_best(recipe["choice"]["candidates"])["epochs"])
    assert ("fit_head" in command, "--epochs" in command) == (not trained, not trained)


def test_the_run_continues_the_chosen_candidate(places, tmp_path, monkeypatch):
    """Before its first epoch it has the candidate's weights, head included."""

    def report_a_bad_head(search, fit=choosing._Search._try_heads):
        strength, row = fit(search)
        return strength, {**row, "accuracy": 0.1, "loss": 9.0}

    monkeypatch.setattr(choosing._Search, "_try_heads", report_a_bad_head)
    settings = make_settings(places, tmp_path, learning_rate=1e-3)
    run = runs.choose(runs.prepare(settings), verbose=0)
    best = run.choice.best()
    assert best["epochs"] > 0
    place = tmp_path / "candidates" / f"rate-{best['learning_rate']:g}" / "model.keras"
    expected = keras_gmlp.load_model(place).get_weights()
    for a, b in zip(expected, run.model.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    assert (run.recipe.epochs, run.recipe.task.fit_head) == (best["best_epoch"], 0)


def test_killed_and_resumed_gives_the_same_weights(places, chosen, tmp_path, monkeypatch):
    """Dies in the first candidate, in the second one, and (if it trains) in the run itself."""
    settings = make_settings(places, tmp_path)
    trains = bool(read(chosen, "metrics.json")["epochs"])
    count = []

    def save_and_die(self, epoch, logs=None, original=RunCheckpoint.on_epoch_end):
        original(self, epoch, logs)
        count.append(epoch)
        if len(count) in (1, 3, 5):
            raise Kill

    with monkeypatch.context() as patch:
        patch.setattr(RunCheckpoint, "on_epoch_end", save_and_die)
        for _ in range(2 + trains):
            with pytest.raises(Kill):
                runs.train_run(settings, export=False, verbose=0)
    runs.train_run(settings, export=False, verbose=0)
    expected, found = (
        keras_gmlp.load_model(place / "model.keras").get_weights() for place in (chosen, tmp_path)
    )
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_array_equal(a, b)
    first, second = (read(place, "recipe.json")["choice"] for place in (chosen, tmp_path))
    assert first == second


def test_candidates_and_run_share_a_time_limit(places, tmp_path, monkeypatch):
    ends = []

    def train(self, **options):  # for a moment
        ends.append(time.monotonic() + options["time_limit"])
        time.sleep(0.3)
        scores = {"test_accuracy": 0.0, "test_loss": 9.0}
        return {**scores, "epochs": 1, "best_epoch": 1}

    monkeypatch.setattr(runs.PreparedRun, "train", train)
    runs.train_run(make_settings(places, tmp_path), export=False, verbose=0, time_limit=1e4)
    first, second, last = ends
    assert second == pytest.approx(first, abs=0.1)  # although a candidate was trained between
    assert first - 60 < last <= first + 0.1  # it began before the features were read


def test_a_choice_is_for_its_settings(places, tmp_path):
    settings = make_settings(places, tmp_path, epochs=0)
    runs.choose(runs.prepare(settings))
    other = make_settings(places, tmp_path, epochs=0, seed=1)
    with pytest.raises(ValueError, match="holds a choice for other settings"):
        runs.choose(runs.prepare(other))
    lines = []
    runs.choose(runs.prepare(settings), report=lines.append)
    assert lines == []  # read, not made again


class Forbidden(ArraySplit):
    """Test images that must not be read."""

    def keep(self, samples=-1):
        raise AssertionError

    def batches(self, size):
        raise AssertionError


def test_test_images_choose_nothing(places, tmp_path):
    prepared = runs.prepare(make_settings(places, tmp_path, learning_rate=0.002))
    test = Forbidden(*prepared.data.test.arrays())
    data = dataclasses.replace(prepared.data, test=test)
    run = runs.choose(dataclasses.replace(prepared, data=data), verbose=0)
    assert [row["learning_rate"] for row in run.choice.candidates[1:]] == [0.002]
    assert len(run.data.train) == 60  # all of them again
    assert run.data.test is test


def test_validation_images_of_the_data_choose(places, tmp_path):
    folder = write_folder(tmp_path / "photos", validation=3)
    run = runs.choose(runs.prepare(make_settings(places, tmp_path / "run", folder)), verbose=0)
    assert (run.choice.images, run.choice.held_out) == (9, False)
    assert len(run.data.validation) == 9
    if run.recipe.epochs:
        assert run.recipe.patience == run.recipe.epochs


def test_other_runs_choose_nothing(places, tmp_path):
    for changes in ({"epochs": 1}, {"freeze": True}, {"fit_head": 0}):
        prepared = runs.prepare(make_settings(places, tmp_path, **changes))
        assert runs.choose(prepared) is prepared
    scratch = RunSettings("gmlp_n4_32", DataSettings("digits", 8), directory=str(tmp_path))
    quick = dataclasses.replace(make_settings(places, tmp_path), recipe="quick")
    single = make_settings(places, tmp_path, write_folder(tmp_path / "single", train=1))
    for settings in (scratch, quick, single):
        assert not choosing.is_open(runs.prepare(settings))


def test_the_head_is_chosen_where_training_gains_nothing(places, tmp_path):
    folder = write_folder(tmp_path / "photos", noise=5)
    settings = make_settings(places, tmp_path / "run", folder)
    metrics = runs.train_run(settings, export=False, verbose=0)
    assert [row["name"] for row in metrics["candidates"]] == [HEAD]
    assert metrics["epochs"] == 0
    assert metrics["test_accuracy"] == 1
    assert not (tmp_path / "run" / "curves.png").exists()
    assert "curves.png" not in (tmp_path / "run" / "README.md").read_text()


def test_ties_go_to_the_lower_loss():
    rows = [{"accuracy": 0.9, "loss": 0.3}, {"accuracy": 0.9, "loss": 0.2}]
    assert choose_best([*rows, {"accuracy": 0.8, "loss": 0.1}]) is rows[1]
    # A higher accuracy with a higher loss, or one that is hardly lower, may be chance.
    assert choose_best([rows[1], {"accuracy": 0.92, "loss": 0.25}]) is rows[1]
    assert choose_best([rows[1], {"accuracy": 0.92, "loss": 0.199}]) is rows[1]
    assert choose_best([rows[1], clear := {"accuracy": 0.92, "loss": 0.19}]) is clear
    row = {"name": HEAD, "epochs": 0, "accuracy": 0.9, "loss": 0.3, "seconds": 1.0}
    table = Choice({}, 10, True, [row]).lines()
    assert table[0] == "candidates, on 10 held-out training images:"
    assert table[2].split() == ["linear", "head", "90.00", "%", "0.300", "1.0", "chosen"]


def test_restart_deletes_the_old_candidates(places, tmp_path):
    prepared = runs.prepare(make_settings(places, tmp_path, epochs=0))
    runs.choose(prepared)
    candidate = tmp_path / "candidates" / "rate-0.001" / "recipe.json"
    candidate.parent.mkdir()
    candidate.write_text("{}")
    (tmp_path / "candidates" / "choice.json").write_text("{}")
    with pytest.raises(ValueError, match="choice of settings is damaged"):
        runs.choose(prepared)
    assert runs.choose(prepared, restart=True).choice.images == 12
    assert not candidate.exists()


@pytest.mark.parametrize(
    ("name", "restart"), [("notes.txt", False), ("rate-0.001/notes.txt", True)]
)
def test_other_files_among_the_candidates_stay(places, tmp_path, name, restart):
    path = tmp_path / "candidates" / name
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    settings = make_settings(places, tmp_path, epochs=0)
    with pytest.raises(ValueError, match=r"(notes.txt|rate-0.001): not a file of the run\. Move"):
        runs.train_run(settings, export=False, verbose=0, restart=restart)
    assert path.read_text() == "mine"


def test_a_slow_machine_tries_less_and_trains_for_less(places, tmp_path, monkeypatch):
    monkeypatch.setattr(choosing, "DEFAULT_BACKBONE", places[0])
    monkeypatch.setattr(choosing, "SECONDS", 0.0)
    lines = []
    run = runs.choose(runs.prepare(make_settings(places, tmp_path)), report=lines.append, verbose=0)
    names = [row["name"] for row in run.choice.candidates]
    assert names == [HEAD, "all layers, rate 0.001"]
    assert "no time to try the rate 0.0003" in lines
    assert run.recipe.epochs == (1 if run.choice.best()["epochs"] else 0)


def test_plan_keeps_to_the_budget(monkeypatch):
    monkeypatch.undo()
    lengths = {images: choosing.plan(images)["epochs"] for images in (30, 121, 500, 1200, 50_000)}
    assert lengths == {30: 8, 121: 8, 500: 2, 1200: 4, 50_000: 4}
    assert [choosing.plan(n)["batch_size"] for n in (121, 500)] == [16, 32]


@pytest.fixture
def clock(monkeypatch):
    """Seconds that the process has used, in a list."""
    now = [30.0]
    monkeypatch.setattr(choosing, "time", SimpleNamespace(process_time=lambda: now[0]))
    return now


def train(limits, clock, seconds):
    """Returns after how many epochs of these lengths a candidate ends."""
    limits.set_model(SimpleNamespace(stop_training=False))
    for epoch, length in enumerate(seconds):
        limits.on_epoch_begin(epoch)
        clock[0] += length
        limits.on_epoch_end(epoch)
        if limits.model.stop_training:
            return epoch + 1
    return len(seconds)


def test_time_of_a_core_for_a_number_of_images(clock):
    assert Budget(100, 0.8).end == Budget(500, 0.8).end == 120 - choosing.AFTER
    assert Budget(1200, 0.8).end == pytest.approx(360 - choosing.AFTER)
    clock[0] = 5000.0  # a process that did other things before
    assert Budget(500, 0.8).end == 5000 - choosing.BEFORE + 120 - choosing.AFTER


def test_only_a_slow_machine_ends_a_candidate_while_there_is_time_for_the_run(clock):
    fast = Budget(500, 0.8)
    assert fast.epochs_left() == math.inf  # nothing is known
    assert train(fast, clock, [10, 1, 1, 1]) == 4
    fast.measure(18.0, 4)
    left = fast.end - clock[0] - 14.0
    assert fast.epochs_left() == math.floor(left * 0.8)
    assert fast.epochs_left(left) == 0
    clock[0] = 30.0
    slow = Budget(500, 0.8)
    assert train(slow, clock, [20, *[12] * 7]) == 3
    assert clock[0] + slow.epochs_left() * 12 / 0.8 <= slow.end
    assert slow.epochs_left() >= 1
