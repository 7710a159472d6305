"""Sweeps: what their table says, and what a kill leaves behind."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import keras
import pytest
from load_app import load_app
from own_images import write_folder
from read_table import read_table

from keras_gmlp.comparison import costs
from keras_gmlp.comparison.plan import Plan, PlannedRun, plan_images, read_plan
from keras_gmlp.comparison.plan_report import COLUMNS, write_report
from keras_gmlp.comparison.workers import available_cores, train_command
from keras_gmlp.runs import RunSettings
from keras_gmlp.training.checkpoints import RunCheckpoint
from keras_gmlp.utils.files import directory_lock

COSTS = {"a": {"flops": 2e6, "latency_ms": 0.5}, "b": {"flops": 4e6, "latency_ms": 0.4}}


def plan(root, presets, seeds=(0,), fractions=(1.0,)):
    return [PlannedRun(s) for s in plan_images(presets, RunSettings(), root, seeds, fractions)]


def finished(run, accuracy, epochs=2, **metrics):
    """Leaves in a run's folder what training leaves there."""
    run.directory.mkdir(parents=True)
    found = {"test_accuracy": accuracy, "train_accuracy": 0.9, "parameters": 1000, **metrics}
    found |= {"epochs": epochs, "seconds": 4.0, "images_per_second": 50.0}
    (run.directory / "metrics.json").write_text(json.dumps(found))
    recipe = {"data": "shades"}
    recipe["environment"] = {"backend": "jax", "processor": "abacus", "versions": {"keras": "3"}}
    (run.directory / "recipe.json").write_text(json.dumps(recipe))
    lines = [f"{i},{accuracy * (i + 1) / epochs}" for i in range(epochs)]
    (run.directory / "history.csv").write_text("\n".join(["epoch,val_accuracy", *lines]) + "\n")


@pytest.fixture
def runs(tmp_path):
    """Two seeds of `a`, one of `b` that failed, and `a` on half of the data."""
    runs = plan(tmp_path / "runs", ["a", "b"], [0, 1], [0.5, 1.0])
    for run, accuracy in zip(runs, [0.5, None, 0.4, 0.3, 0.7, 0.2, 0.4, None], strict=True):
        if accuracy:
            finished(run, accuracy)
    runs[1].failure = "out of memory"
    return runs


def test_plan_has_each_combination_once_whole_set_first(tmp_path):
    runs = plan(tmp_path, ["a", "b", "a"], [0, 1], [0.5, 1.0])
    names = ["a-seed0", "b-seed0", "a-0.5-seed0", "b-0.5-seed0"]
    assert [run.name for run in runs] == [*names, *(f"{name[:-1]}1" for name in names)]


def test_table_and_charts(runs, tmp_path):
    (tmp_path / "epochs.png").touch()  # of an earlier report
    _, paths = write_report(runs, tmp_path, "apps/compare.py a b", COSTS)
    assert not (tmp_path / "epochs.png").exists()
    names = ["results.csv", "results.md", "costs.png", "fractions.png"]
    assert [path.name for path in paths] == names
    rows = read_table(tmp_path / "results.csv")
    assert tuple(rows[0]) == COLUMNS
    assert [(row["preset"], row["seed"], row["fraction"]) for row in rows] == [
        (run.preset, str(run.seed), str(run.fraction)) for run in runs
    ]
    first, failed, *_, missing = rows
    expected = {"test_accuracy": "0.5", "flops": "2000000.0", "latency_ms": "0.5"}
    expected |= {"backend": "jax", "versions": "keras=3", "status": "complete"}
    assert expected.items() <= first.items()
    assert (failed["status"], failed["test_accuracy"]) == ("failed: out of memory", "")
    assert missing["status"] == "0 epochs so far"
    text = (tmp_path / "results.md").read_text()
    # The standard deviation of 50 and 70, with n - 1.
    cells = "1,000 | 2 | 2 | accuracy (%) | 60.00 ± 14.14 |  |  |  | 90.00 | 2 | 0.50 | 50 |"
    assert f"| `a` | {cells}" in text
    assert "| `a` | fraction=0.5 | -20.00 ± 10.00 |" in text
    assert "- `b-seed0`: failed: out of memory" in text
    assert "shades, recipe `quick`, Keras on jax, abacus (keras=3)." in text


def test_every_run_gets_the_settings_of_the_sweep(monkeypatch):
    monkeypatch.setenv("TFDS_DATA_DIR", "")  # restores it
    compare = load_app("compare")
    arguments = ["gmlp_n4_32", "vit_n4_32", "--data-dir", "sets", "--epochs", "1", "--seeds", "3"]
    arguments += ["--fractions", "0.5", "--set", "mixup=0.2", "--patch-size", "8"]
    first, second = (run.settings for run in compare.main.parse(arguments).plan.runs)
    assert (first.model, first.patch_size) == ("gmlp_n4_32", 8)
    assert second.model == "vit_n4_32"
    assert (first.data, first.fraction, first.data_dir) == ("digits", 0.5, "sets")
    assert first.changes == {"epochs": 1, "seed": 3, "mixup": 0.2}
    assert first.out == "runs/compare-digits/runs/gmlp_n4_32-0.5-seed3"
    assert json.loads(train_command(first)[-1]) == first.to_dict()


SWEEP = [
    *("gmlp_n4_32", "--data", "digits", "--fractions", "0.1", "--seeds", "1", "--epochs", "2"),
    *("--backend", "torch"),  # which has nothing to compile
    *("--image-size", "8", "--precision", "float32", "--set-model", "depth=2"),
]


class Kill(BaseException):
    """Nothing catches it."""


def test_sweep_that_was_killed_has_each_run_once(tmp_path, monkeypatch, capsys, train_here):
    def save_and_die(self, epoch, logs=None, original=RunCheckpoint.on_epoch_end):
        original(self, epoch, logs)
        raise Kill

    monkeypatch.setattr(costs, "measure_costs", lambda runs, report: {})
    compare, arguments = load_app("compare"), [*SWEEP, "--out", str(tmp_path)]
    with monkeypatch.context() as patch:
        patch.setattr(RunCheckpoint, "on_epoch_end", save_and_die)
        with pytest.raises(Kill):
            compare.main(arguments)
    assert compare.main(arguments) == 0
    assert "results.md" in capsys.readouterr().out
    rows = read_table(tmp_path / "results.csv")
    found = [(row["preset"], row["seed"], row["status"], row["epochs"]) for row in rows]
    assert found == [("gmlp_n4_32", "1", "complete", "2")]
    (path,) = tmp_path.glob("runs/*/history.csv")
    assert [row["epoch"] for row in read_table(path)] == ["0", "1"]


def test_run_ends_with_the_sweep_that_started_it():
    code = "from keras_gmlp.runs.__main__ import stop_with_parent; stop_with_parent()"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
    process.stdin.close()
    assert process.wait() == 130


STAND_IN = """
import json, pathlib, sys
settings = json.loads(sys.argv[1])
if settings["seed"] == 1:
    sys.exit("out of\\nmemory")
metrics = {"test_accuracy": 0.5, "parameters": 7, "epochs": 1}
pathlib.Path(settings["out"], "recipe.json").write_text("{}")
pathlib.Path(settings["out"], "history.csv").write_text("epoch,val_accuracy\\n0,0.5\\n")
pathlib.Path(settings["out"], "metrics.json").write_text(json.dumps(metrics))
"""


def replace_training(monkeypatch, code):
    """Has sweeps run some Python code in place of the training."""
    monkeypatch.setattr(
        "keras_gmlp.comparison.workers.train_command",
        lambda settings: [sys.executable, "-c", code, json.dumps(settings.to_dict())],
    )


def test_run_that_fails_is_a_row_and_the_rest_go_on(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(costs, "measure_costs", lambda runs, report: {})
    replace_training(monkeypatch, STAND_IN)
    compare = load_app("compare")
    arguments = ["gmlp_n4_32", "--out", str(tmp_path), "--seeds", "0", "1", "2", "--epochs", "1"]
    assert compare.main(arguments) == 1
    states = [row["status"] for row in read_table(tmp_path / "results.csv")]
    assert states == ["complete", "failed: memory", "complete"]
    assert "gmlp_n4_32-seed1: failed: memory" in capsys.readouterr().err
    replace_training(monkeypatch, STAND_IN.replace("== 1", "== None"))
    assert compare.main(arguments) == 0


def test_runs_of_a_file_are_trained_and_compared_and_a_bad_one_is_one_line(
    tmp_path, monkeypatch, app
):
    replace_training(monkeypatch, STAND_IN)
    path = tmp_path / "plan.json"
    entries = [{"out": str(tmp_path / f"a-s{seed}"), "seed": seed} for seed in (0, 2)]
    path.write_text(json.dumps(entries))
    code, output, error = app("compare", path, "--out", tmp_path / "out")
    assert (code, "results.md" in output) == (0, True), error
    assert [row["name"] for row in read_table(tmp_path / "out" / "results.csv")] == ["a-s0", "a-s2"]
    for text, reason in (
        ("[", "damaged or not JSON"),
        ("{}", "list"),
        ("[]", "list"),
        ('[{"recipe": "slow"}]', "run 1: .*slow"),
        ('[{"modl": "a"}]', r"run 1: .*'modl'"),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=reason) as error:
            read_plan(path)
        assert "\n" not in str(error.value)
    code, _, error = app("compare", path)
    assert (code, "'modl'" in error) == (2, True)
    code, _, error = app("compare", path, "--epochs", "3")
    assert (code, "no --epochs" in error) == (2, True)


def test_images_with_any_number_of_labels_are_compared(tmp_path, train_here):
    photos = Path(write_folder(tmp_path / "photos", train=4))
    paths = [path.relative_to(tmp_path) for path in sorted(photos.rglob("*.png"))]
    rows = [f"{path},{path.parts[2]}|seen,{path.parts[1]}" for path in paths]
    (tmp_path / "table.csv").write_text("\n".join(["path,labels,split", *rows]))
    shared = RunSettings(data=str(tmp_path / "table.csv"), image_size=8, set_model={"depth": 1})
    shared = shared.with_changes(epochs=1, precision="float32")
    runs = Plan(plan_images(["gmlp_n4_32"], shared, tmp_path / "runs")).runs
    for _ in range(2):  # the second time they are complete
        Plan([run.settings for run in runs]).work()
    (row,), _ = write_report(runs, tmp_path / "report")
    assert row["measure"] == "mean average precision (%)"
    assert row["score"] == pytest.approx(100 * runs[0].metrics["test_mean_average_precision"])


@pytest.mark.skipif(len(available_cores()) < 2, reason="two runs at a time need two cores")
def test_runs_train_on_the_backend_and_share_the_memory_of_a_gpu(tmp_path, monkeypatch):
    names = "'KERAS_BACKEND', 'XLA_PYTHON_CLIENT_PREALLOCATE'"
    code = f"import os, sys; sys.exit(' '.join(os.environ.get(n, 'none') for n in ({names})))"
    replace_training(monkeypatch, code)
    monkeypatch.delenv("XLA_PYTHON_CLIENT_PREALLOCATE", raising=False)
    here = keras.backend.backend()
    for backend, jobs, found in ((None, 1, f"{here} none"), ("jax", 2, "jax false")):
        settings = plan_images(["gmlp_n4_32"], RunSettings(), tmp_path / str(jobs))
        sweep = Plan(settings, jobs, backend)
        sweep.work()
        assert [run.status for run in sweep.runs] == [f"failed: {found}"]


def test_sweep_that_cannot_work_is_refused_before_it_trains(tmp_path):
    with pytest.raises(ValueError, match="Did you mean 'vit_n4_32'"):
        Plan(plan_images(["gmlp_n4_32", "vit_n4_23"], RunSettings(), tmp_path))
    with pytest.raises(ValueError, match="jobs"):
        Plan(plan_images(["gmlp_n4_32"], RunSettings(), tmp_path), jobs=1000)
    assert list(tmp_path.iterdir()) == []


def test_table_of_those_runs_that_are_there(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(costs, "measure_costs", lambda runs, report: {})
    arguments = ["gmlp_n4_32", "vit_n4_32", "--seeds", "0", "1", "--out", str(tmp_path)]
    (there,) = plan(tmp_path / "runs", ["vit_n4_32"], seeds=[1])
    finished(there, 0.5)
    (there.directory / "recipe.json").write_text("{}")
    assert load_app("compare").main([*arguments, "--no-train", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["preset"], row["seed"]) for row in rows] == [("vit_n4_32", 1)]


def test_run_that_was_begun_otherwise_is_not_gone_on_with(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("photos", "others"):
        (tmp_path / folder).mkdir()
    (tmp_path / "run" / "checkpoint").mkdir(parents=True)
    (tmp_path / "run" / "checkpoint" / "000001.weights.h5").touch()
    settings = RunSettings(data="photos", epochs=2, out="run")
    for begun, reason in (
        ({"epochs": 3}, "epochs 3 there, 2 here"),
        ({"image_shape": [8, 8, 1]}, "image_size .8, 8. there, .32, 32. here"),
        ({"fit": "pad"}, "fit 'pad' there, 'crop' here"),
        ({"environment": {"backend": "torch"}}, "'torch' there, 'jax' here"),
        ({"data": "others"}, "data 'others' there, 'photos' here"),
    ):
        (tmp_path / "run" / "recipe.json").write_text(json.dumps(begun))
        with pytest.raises(ValueError, match=reason):
            Plan([settings]).check_recorded("jax")
    for given in ("others/", "./others"):  # the same folder
        Plan([dataclasses.replace(settings, data=given)]).check_recorded()
    chosen = {"data": "photos", "epochs": 3, "choice": {"changes": {"epochs": 3}}}
    (tmp_path / "run" / "recipe.json").write_text(json.dumps(chosen))
    Plan([RunSettings(data="photos", out="run")]).check_recorded()


def test_second_sweep_of_the_same_runs_is_refused(tmp_path, capsys):
    arguments = ["gmlp_n4_32", "--out", str(tmp_path)]
    with directory_lock(tmp_path / "runs"):
        assert load_app("compare").main(arguments) == 1
    assert "another process" in capsys.readouterr().err
