"""Comparisons of language models: their runs, their tables, the program."""

import dataclasses
import json
import sys

import pytest
from load_app import load_app
from read_table import read_table

from keras_gmlp.comparison.plan import Plan, PlannedRun, plan_texts
from keras_gmlp.comparison.workers import Workers, available_cores
from keras_gmlp.data.text.corpus import prepare_corpus
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


def test_program_compares_and_resumes(tmp_path, monkeypatch, capsys, train_here):
    lines = [
        f"The {a} {b} is {c}." for a in ("cat", "dog") for b in ("here", "there") for c in "xy"
    ]
    (tmp_path / "train.txt").write_text("\n".join(lines * 20))
    (tmp_path / "valid.txt").write_text("\n".join(lines))
    corpus = tmp_path / "corpus"
    prepare_corpus(tmp_path / "train.txt", 128, corpus, valid=tmp_path / "valid.txt")
    rows = [f"x cat {n},yes\ny cat {n},no\n" for n in range(20)]
    (tmp_path / "mine.csv").write_text(f"text,label\n{''.join(rows)}")
    settings = {"precision": "float32", "epoch_tokens": 2048, "length": 16, "batch_size": 16}
    compare = load_app("compare")

    def plan_small(*arguments, original=plan_texts):
        """Plans the same runs, with settings for a test."""
        for run in original(*arguments):
            if run.kind == "task":
                yield run.with_changes(epochs=1, length=16, precision="float32")
                continue
            sizes = {"dim": 8, "depth": 1, "max_length": 16, "hidden_dim": 16}
            small = run.with_changes(**settings, validation_windows=8)
            yield dataclasses.replace(small, set_model=sizes)

    place = "keras_gmlp.comparison.plan.plan_texts"
    monkeypatch.setattr(place, lambda *each: list(plan_small(*each)))
    out = tmp_path / "out"
    command = ["gmlp_nano", "--prepared", str(tmp_path / "none"), "--out", str(out)]
    with pytest.raises(SystemExit, match="2"):
        compare.main(command)
    assert "none: no such folder" in capsys.readouterr().err
    command[2] = str(corpus)
    command += ["--tasks", str(tmp_path / "mine.csv")]
    command += ["--epochs", "1", "--json"]
    assert compare.main(command) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["status"] for row in found] == ["complete"] * 2
    assert len(read_table(out / "results.csv")) == 2
    before = (out / "runs" / "gmlp_nano" / "model.keras").stat().st_mtime_ns
    assert compare.main(command) == 0
    assert (out / "runs" / "gmlp_nano" / "model.keras").stat().st_mtime_ns == before
    capsys.readouterr()
    table = (out / "results.md").read_bytes()
    assert compare.main([*command, "--epochs", "2"]) == 1
    assert "epochs 1 there, 2 here" in capsys.readouterr().err
    assert (out / "results.md").read_bytes() == table
