"""Comparisons of language models: their runs, their tables, the program."""

import dataclasses
import json
import sys

import pytest
from load_app import load_app
from read_table import read_table

from keras_gmlp.comparison import texts
from keras_gmlp.comparison.plan import measure_of
from keras_gmlp.comparison.texts import TextSweep, to_markdown
from keras_gmlp.comparison.workers import Workers, available_cores
from keras_gmlp.data.text import prepare_corpus
from keras_gmlp.runs.run import train_run
from keras_gmlp.runs.settings import RunSettings
from keras_gmlp.training import precision

ROWS = [
    {
        "preset": "bert_nano",
        "parameters": 2859072,
        "perplexity": 50.0,
        "scores": {"sst2": {0: 80.0, 1: 82.0, 2: 84.0}, "cola": {0: 10.0}},
        "single": {"sst2": [], "cola": [0]},
    },
    {
        "preset": "gmlp_nano",
        "parameters": 2871156,
        "perplexity": 45.125,
        "scores": {"sst2": {0: 81.0, 1: 84.0, 2: 84.0}, "cola": {}},
        "single": {"sst2": [], "cola": []},
    },
]


def test_table_has_means_and_paired_differences():
    text = to_markdown(ROWS, "the command")
    lines = text.splitlines()
    assert "| model | parameters | perplexity | sst2, accuracy (%) | cola, Matthews" in text
    # stdev of 80, 82, 84 is 2; of 81, 84, 84 the square root of 3
    scores = "82.0 ± 2.0 (3) | 10.0 (1 of 1 predicts one class)"
    assert f"| bert_nano | 2,859,072 | 50.00 | {scores} |" in lines
    assert "| gmlp_nano | 2,871,156 | 45.12 | 83.0 ± 1.7 (3) |  |" in lines
    # differences 1, 2, 0: mean 1, standard deviation 1, over the square root of 3
    assert "| gmlp_nano | +1.0 ± 0.6 |  |" in lines
    assert "the command" in text


def test_measures():
    assert measure_of("cola").key == "test_matthews_correlation"
    assert measure_of("mine.csv").key == "test_accuracy"


def test_runs_of_a_sweep(tmp_path):
    names = ["gmlp_nano", "bert_nano", "gmlp_nano"]
    changes = {"precision": "float32"}
    sweep = TextSweep(
        names, "runs/text", ["mrpc"], tmp_path, seeds=[3, 4], changes=changes, epochs=2
    )
    pretrained, other, *tuned = (run.settings for run in sweep.runs)
    assert (pretrained.model, other.model) == ("gmlp_nano", "bert_nano")
    assert pretrained.changes == {"precision": "float32", "epochs": 2, "seed": 3}
    assert [settings.changes["seed"] for settings in tuned] == [3, 4, 3, 4]
    assert tuned[0].weights == pretrained.out
    # As pairs of MRPC require it, and not the epochs of the pre-training.
    assert (tuned[0].changes["epochs"], tuned[0].changes["length"]) == (10, 128)
    with pytest.raises(ValueError, match="gmlp_s16_224"):
        TextSweep(["gmlp_s16_224"], "runs/text", ["mrpc"], tmp_path)
    for folder in "ab":
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.csv").touch()
    same = [str(tmp_path / folder / "mine.csv") for folder in "ab"]
    with pytest.raises(ValueError, match="different names"):
        TextSweep(["gmlp_nano"], "runs/text", same, tmp_path)


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
(place / "metrics.json").write_text("{}")
"""


def test_fine_tuning_waits_for_its_language_model(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        "keras_gmlp.comparison.workers.train_command",
        lambda settings: [sys.executable, "-c", TRAINER, json.dumps(settings.to_dict())],
    )
    names, jobs = ["gmlp_nano", "bert_nano"], min(2, len(available_cores()))
    options = {"seeds": [0, 1], "data_dir": "sets", "jobs": jobs}
    sweep = TextSweep(names, tmp_path / "text", ["mrpc"], tmp_path, **options)
    with pytest.raises(ValueError, match="text: no such folder"):
        sweep.work()
    (tmp_path / "text").mkdir()
    sweep.work()
    good, bad = sweep.models
    assert [run.complete for run in (good, bad)] == [True, False]
    assert bad.status == "failed: the loss is NaN"
    states = [run.status for run in sweep.tuned]
    assert states == ["complete"] * 2 + ["0 epochs so far"] * 2
    assert "bert_nano-mrpc-1: not trained, because bert_nano failed" in capsys.readouterr().err
    bad.forget_failure()  # as --retry does
    (bad.directory / "metrics.json").write_text("{}")
    Workers(sweep.runs, jobs, "torch").train()
    assert [run.status for run in sweep.tuned] == ["complete"] * 4
    found = [json.loads((run.directory / "options.json").read_text()) for run in sweep.tuned[:2]]
    assert [options["data_dir"] for options in found] == ["sets", "sets"]
    for options, run in zip(found, sweep.tuned, strict=False):
        assert RunSettings(**options) == run.settings


def train_here(workers):
    """Trains the runs in this process, in place of `Workers.train`."""
    for run in workers.waiting:
        train_run(run.settings, verbose=0)


def test_program_compares_and_resumes(tmp_path, monkeypatch, capsys):
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

    class Small(TextSweep):
        """The same runs, with settings for a test."""

        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            for run in self.models:
                small = run.settings.with_changes(**settings, validation_windows=8)
                sizes = {"dim": 8, "depth": 1, "max_length": 16}
                sizes |= {"hidden_dim": 16} if run.preset.startswith("gmlp") else {"num_heads": 2}
                run.settings = dataclasses.replace(small, set_model=sizes)
            for run in self.tuned:
                short = {"epochs": 1, "length": 16, "precision": "float32"}
                run.settings = run.settings.with_changes(**short)

    monkeypatch.setattr(texts, "TextSweep", Small)
    monkeypatch.setattr(Workers, "train", train_here)
    out = tmp_path / "out"
    command = ["gmlp_nano", "bert_nano", "--text", str(corpus)]
    command += ["--tasks", str(tmp_path / "mine.csv")]
    command += ["--epochs", "1", "--seeds", "0", "1", "--out", str(out), "--json"]
    assert compare.main(command) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["preset"] for row in found] == ["gmlp_nano", "bert_nano"]
    assert all(len(scores) == 2 for row in found for scores in row["scores"].values())
    assert len(read_table(out / "results.csv")) == 4
    assert (out / "tasks.png").stat().st_size > 5000
    monkeypatch.setattr(precision, "choose_in_child", lambda *_: "float32")  # takes seconds
    before = (out / "runs" / "gmlp_nano" / "model.keras").stat().st_mtime_ns
    assert compare.main(command) == 0
    assert (out / "runs" / "gmlp_nano" / "model.keras").stat().st_mtime_ns == before
    capsys.readouterr()
    table = (out / "results.md").read_bytes()
    assert compare.main([*command, "--epochs", "2"]) == 1
    assert "epochs 1 there, 2 here" in capsys.readouterr().err
    assert (out / "results.md").read_bytes() == table
