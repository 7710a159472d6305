"""Sweeps: what their table says, and what a kill leaves behind."""

import dataclasses
import json
import subprocess
import sys

import keras
import pytest
from load_app import load_app
from read_table import read_table
from tiny_run import kill_after_an_epoch

from keras_gmlp.comparison import costs
from keras_gmlp.comparison.plan import Plan, plan_images, read_plan
from keras_gmlp.comparison.workers import available_cores, train_command
from keras_gmlp.runs import RunSettings
from keras_gmlp.utils.files import directory_lock


def test_plan_has_each_combination_once_whole_set_first():
    runs = plan_images(["a", "b", "a"], RunSettings(), "runs", [0, 1], [0.5, 1.0])
    names = ["a-seed0", "b-seed0", "a-0.5-seed0", "b-0.5-seed0"]
    names += [f"{name[:-1]}1" for name in names]
    assert [run.out for run in runs] == [f"runs/{name}" for name in names]


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


def test_sweep_that_was_killed_has_each_run_once(tmp_path, monkeypatch, capsys, train_here):
    monkeypatch.setattr(costs, "measure_costs", lambda runs, report: {})
    compare, arguments = load_app("compare"), [*SWEEP, "--out", str(tmp_path)]
    kill_after_an_epoch(compare.main, arguments)
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
    capsys.readouterr()
    there = ["--seeds", "2", "3", "--no-train", "--json"]  # of which one was trained
    assert compare.main([*arguments, *there]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["preset"], row["seed"]) for row in rows] == [("gmlp_n4_32", 2)]


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


def test_run_that_was_begun_otherwise_is_not_gone_on_with(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("photos", "others"):
        (tmp_path / folder).mkdir()
    (tmp_path / "run" / "checkpoint").mkdir(parents=True)
    (tmp_path / "run" / "checkpoint" / "000001.weights.h5").touch()
    settings = RunSettings(model="gmlp_n4_32", data="photos", epochs=2, out="run")
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
    Plan([dataclasses.replace(settings, epochs=None)]).check_recorded()


def test_second_sweep_of_the_same_runs_is_refused(tmp_path, capsys):
    arguments = ["gmlp_n4_32", "--out", str(tmp_path)]
    with directory_lock(tmp_path / "runs"):
        assert load_app("compare").main(arguments) == 1
    assert "another process" in capsys.readouterr().err
