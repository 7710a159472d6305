"""Training on text from files to a classifier, with a model of a few thousand parameters."""

import argparse
import csv
import json
import shutil

import keras
import numpy as np
import pytest
from check_layer import to_numpy
from load_app import load_app
from read_table import read_table
from tiny_run import kill_after_an_epoch

from keras_gmlp import text
from keras_gmlp.data.text.labelled_texts import open_texts
from keras_gmlp.programs.shared import training
from keras_gmlp.runs.prepare import prepare
from keras_gmlp.runs.run import read_run, train_run
from keras_gmlp.runs.settings import RunSettings
from keras_gmlp.weights.loading import load

# Training warns of few test texts.
pytestmark = pytest.mark.filterwarnings("ignore::keras_gmlp.utils.errors.DataWarning")

SMALL = ["dim=16", "depth=1", "hidden_dim=32", "max_length=32"]
OPTIONS = [
    *("--precision", "float32"),
    *(part for setting in SMALL for part in ("--set-model", setting)),
    *("--epochs", "2", "--batch-size", "8"),
    *("--set", "epoch_tokens=768", "--set", "length=16", "--set", "validation_windows=8"),
]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Sentences in which the second word decides the last one."""
    folder = tmp_path_factory.mktemp("text")
    generator = np.random.default_rng(0)
    pairs = {"cat": "milk", "dog": "bones", "cow": "grass", "bee": "honey"}
    for name, count in (("train", 120), ("valid", 30)):
        lines = []
        for i in range(count):
            animal = generator.choice(list(pairs))
            lines.append(f"the {animal} that lives in house {i % 9} likes {pairs[animal]}")
            lines += [""] * (i % 3 == 0)
        (folder / f"{name}.txt").write_text("\n".join(lines))
    rows = [
        (f"the {animal} in house {i} likes {food}", "wild" if animal == "bee" else "tame")
        for i in range(9)
        for animal, food in pairs.items()
    ]
    with open(folder / "animals.csv", "w", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *rows])
    return folder


@pytest.fixture(scope="module")
def pretrained(files):
    """The folder of a language model that train.py trained."""
    out = files / "lm"
    arguments = ["--text", str(files / "train.txt"), "--valid", str(files / "valid.txt")]
    arguments += ["--prepared", str(files / "prepared"), "--vocabulary-size", "128"]
    assert load_app("train").main([*arguments, *OPTIONS, "--out", str(out), "--json"]) == 0
    return out


def test_pretraining_leaves_a_model_with_its_tokenizer(pretrained, files):
    names = {path.name for path in pretrained.iterdir()}
    assert names >= {"model.keras", "tokenizer.json", "curves.png", "README.md"}
    metrics = json.loads((pretrained / "metrics.json").read_text())
    assert metrics["test_perplexity"] == pytest.approx(np.exp(metrics["test_loss"]), rel=0.02)
    assert metrics["epochs"] == 2
    assert metrics["tokens_per_second"] > 0
    recipe = json.loads((pretrained / "recipe.json").read_text())
    tokenizer = text.Tokenizer.load(pretrained / "tokenizer.json")
    assert recipe["tokenizer"] == tokenizer.hash
    assert (recipe["preset"], recipe["task"]) == ("gmlp_nano", "masked_lm")
    settings = read_run(pretrained)
    assert settings.prepared == str(files / "prepared")
    assert settings.set_model["max_length"] == 32
    assert settings.make_recipe().task.epoch_tokens == recipe["epoch_tokens"] == 768
    assert train_run(settings, verbose=0) == metrics  # complete, and not exported
    saved = keras.saving.load_model(pretrained / "model.keras")
    assert saved.count_params() == metrics["parameters"]
    model = load(pretrained)
    assert (model.task, model.length) == ("masked_lm", 16)
    assert len(model.fill_mask("the [MASK] likes honey", top=3)) == 3


def test_a_stopped_run_resumes_to_the_same_weights(pretrained, files, tmp_path):
    settings = RunSettings(
        prepared=str(files / "prepared"), precision="float32", epochs=2, batch_size=8,
        set={"epoch_tokens": 768, "length": 16, "validation_windows": 8},
        set_model={"dim": 16, "depth": 1, "hidden_dim": 32, "max_length": 32},
        out=str(tmp_path / "run"),
    )  # fmt: skip
    kill_after_an_epoch(train_run, settings, verbose=0)
    metrics = train_run(settings, verbose=0)
    unbroken = json.loads((pretrained / "metrics.json").read_text())
    assert metrics["test_perplexity"] == pytest.approx(unbroken["test_perplexity"], rel=1e-5)
    saved = keras.saving.load_model(pretrained / "model.keras")
    resumed = keras.saving.load_model(tmp_path / "run" / "model.keras")
    for ours, theirs in zip(resumed.weights, saved.weights, strict=True):
        np.testing.assert_allclose(to_numpy(ours), to_numpy(theirs), rtol=1e-4, atol=1e-5)


def test_fine_tuning_learns_a_task(pretrained, files, tmp_path):
    out = tmp_path / "tuned"
    arguments = ["--task", str(files / "animals.csv"), "--weights", str(pretrained)]
    arguments += ["--epochs", "60", "--learning-rate", "0.02", "--precision", "float32"]
    assert load_app("train").main([*arguments, "--out", str(out), "--json"]) == 0
    metrics = json.loads((out / "metrics.json").read_text())
    assert metrics["test_accuracy"] == 1
    assert metrics["test_matthews_correlation"] == pytest.approx(1)
    assert (out / "labels.txt").read_text() == "tame\nwild\n"
    model = keras.saving.load_model(out / "model.keras")
    ids = text.Tokenizer.load(out / "tokenizer.json").encode("the bee likes honey").ids
    assert to_numpy(model(np.array([ids]))).argmax() == 1
    (best,) = load(out).classify("the bee likes honey", top=1)
    assert best["label"] == "wild"
    with pytest.raises(ValueError, match="classifies single texts"):
        load(out).classify("the bee", "honey")
    recipe = json.loads((out / "recipe.json").read_text())
    assert (recipe["task"], recipe["preset"]) == ("text_classification", "gmlp_nano")
    assert recipe["length"] == 64  # longer than the language model's texts
    settings = read_run(out)
    assert (settings.weights, settings.task) == (str(pretrained), str(files / "animals.csv"))
    assert settings.changes == {"epochs": 60, "learning_rate": 0.02, "precision": "float32"}


def test_settings_are_chosen_on_a_part_of_the_training_texts(pretrained, files, tmp_path):
    copy = shutil.copytree(pretrained, tmp_path / "copy")
    text.Tokenizer.train(["other words"], 128).save(copy / "tokenizer.json")
    given = {"weights": str(copy), "task": str(files / "animals.csv")}
    whole = prepare(RunSettings(**given)).data
    # The tokenizer is the one that the model was trained with.
    assert whole.tokenizer.hash == text.Tokenizer.load(pretrained / "tokenizer.json").hash
    part = prepare(RunSettings(**given, hold_out=0.25)).data
    assert set(part.train.texts) | set(part.test.texts) == set(whole.train.texts)
    assert not set(part.test.texts) & set(whole.test.texts)


def test_the_best_epoch_is_chosen_on_held_out_training_texts(pretrained, files, tmp_path):
    table, out = str(files / "animals.csv"), tmp_path / "run"
    given = {"weights": str(pretrained), "task": table}
    changes = {"epochs": 4, "patience": 1, "batch_size": 8, "precision": "float32"}
    changes["learning_rate"] = 0.3  # too high, so that the first epochs are not the worst
    settings = RunSettings(**given, **changes, validation=0.25, out=str(out))
    seen = []
    metrics = train_run(settings, verbose=0, introduce=seen.append)
    everything = open_texts(RunSettings(**given).text_source)
    data = seen[0].data
    assert len(data.train) + len(data.validation) == len(everything.train)
    assert len(data.test) == len(everything.test)
    history = read_table(out / "history.csv")
    scores = [float(row["val_accuracy"]) for row in history]
    assert metrics["best_epoch"] == 1 + int(np.argmax(scores))
    assert metrics["validation_accuracy"] == pytest.approx(max(scores))
    assert len(history) in (4, metrics["best_epoch"] + 1)
    assert json.loads((out / "recipe.json").read_text())["validation"] == 0.25


def test_a_run_that_predicts_one_class_says_so(capsys):
    metrics = {"test_accuracy": 0.6, "test_predicted_classes": 1, "epochs": 3}
    training.report(argparse.Namespace(json=False, folds=None), [metrics], "runs/x")
    assert "one class" in capsys.readouterr().out


def test_a_run_is_named_after_its_preset_and_its_data(pretrained, files):
    names = {"glue/sst2": "sst2", "a/b": "a-b", str(files / "animals.csv"): "animals"}
    for data, name in names.items():
        assert RunSettings(weights=str(pretrained), task=data).out == f"runs/gmlp_nano-{name}"
    other = RunSettings(weights="models/wiki-gmlp", task="cola")
    assert other.out == "runs/wiki-gmlp-cola"
