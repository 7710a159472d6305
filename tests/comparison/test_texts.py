"""Comparisons of language models: their runs, their tables, the program."""

import json
import sys

import pytest
from load_app import load_app

from keras_gmlp.comparison.plan import Plan, PlannedRun, plan_texts
from keras_gmlp.comparison.workers import Workers, available_cores
from keras_gmlp.runs.settings import RunSettings


def plan(presets, directory, tasks=("mrpc",), prepared="runs/text", **options):
    shared = RunSettings(prepared=str(prepared), precision="float32", data_dir="sets")
    return plan_texts(presets, shared, tasks, directory, **options)


def test_runs_of_a_sweep(tmp_path):
    names = ["gmlp_nano", "bert_nano", "gmlp_nano"]
    pretrained, other, *tuned = plan(names, tmp_path, seeds=[3, 4])
    assert (pretrained.model, other.model) == ("gmlp_nano", "bert_nano")
    assert pretrained.changes == {"precision": "float32", "seed": 3}
    assert [settings.changes["seed"] for settings in tuned] == [3, 4, 3, 4]
    assert tuned[0].weights == pretrained.out
    # As pairs of MRPC require it, and not the epochs of the pre-training.
    assert (tuned[0].changes["epochs"], tuned[0].changes["length"]) == (10, 128)
    assert PlannedRun(plan(names, tmp_path, ["cola"])[-1]).measure == "matthews_correlation"
    with pytest.raises(ValueError, match="gmlp_s16_224"):
        Plan(plan(["gmlp_s16_224"], tmp_path))
    for folder in "ab":
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.csv").touch()
    same = [str(tmp_path / folder / "mine.csv") for folder in "ab"]
    with pytest.raises(ValueError, match="different names"):
        Plan(plan(["gmlp_nano"], tmp_path, same))


# Writes the metrics of a run, unless the language model fails; its settings are the last argument.
TRAINER = """
import json, pathlib, sys, time
options = json.loads(sys.argv[1])
place = pathlib.Path(options["out"])
if place.name == "bert_nano":
    sys.exit("the loss is NaN")
if "task" in options:
    assert (pathlib.Path(options["weights"]) / "metrics.json").exists()
else:
    time.sleep(1.5)  # the other core is free meanwhile
(place / "options.json").write_text(sys.argv[1])
(place / "recipe.json").write_text("{}")
(place / "metrics.json").write_text("{}")
"""


def test_fine_tuning_waits_for_its_language_model(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        "keras_gmlp.comparison.workers.train_command",
        lambda settings: [sys.executable, "-c", TRAINER, json.dumps(settings.to_dict())],
    )
    names, jobs = ["gmlp_nano", "bert_nano"], min(2, len(available_cores()))
    sweep = Plan(plan(names, tmp_path, seeds=[0, 1]), jobs)
    sweep.work()
    good, bad, *tuned = sweep.runs
    assert [run.complete for run in (good, bad)] == [True, False]
    assert bad.status == "failed: the loss is NaN"
    states = [run.status for run in tuned]
    assert states == ["complete"] * 2 + ["0 epochs so far"] * 2
    assert "bert_nano-mrpc-1: not trained, because bert_nano failed" in capsys.readouterr().err
    for name in ("recipe.json", "metrics.json"):
        (bad.directory / name).write_text("{}")
    Workers(sweep.runs, jobs, "torch").train()
    assert [run.status for run in tuned] == ["complete"] * 4
    found = [json.loads((run.directory / "options.json").read_text()) for run in tuned[:2]]
    assert [options["data_dir"] for options in found] == ["sets", "sets"]
    for options, run in zip(found, tuned, strict=False):
        assert RunSettings(**options) == run.settings


def test_program_plans_the_runs_of_a_prepared_text(tmp_path, app):
    arguments = ["gmlp_nano", "--prepared", str(tmp_path / "text"), "--tasks", "cola"]
    arguments += ["--epochs", "1"]
    code, _, error = app("compare", *arguments)
    assert (code, "no such folder" in error) == (2, True)
    (tmp_path / "text").mkdir()
    runs = load_app("compare").main.parse(arguments).plan.runs
    pretrained, tuned = (run.settings for run in runs)
    assert (pretrained.prepared, pretrained.epochs) == (arguments[2], 1)
    assert (tuned.task, tuned.weights) == ("cola", pretrained.out)
