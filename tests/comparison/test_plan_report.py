"""The report of a plan, from folders as training leaves them."""

import json

import pytest
from read_table import read_table

from keras_gmlp.comparison.plan import PlannedRun
from keras_gmlp.comparison.plan_report import COLUMNS, write_report
from keras_gmlp.runs import RunSettings

ENVIRONMENT = {"backend": "jax", "devices": ["cpu"], "processor": "a processor", "versions": {}}


@pytest.fixture
def train(tmp_path):
    """Returns a function that adds a run to a plan, trained to a score or not at all."""
    runs = []

    def train(name, score=None, parameters=800_000, measure="test_accuracy", classes=2, **entry):
        runs.append(run := PlannedRun(RunSettings(**entry, out=str(tmp_path / name))))
        if score is None:
            return
        run.directory.mkdir()
        recorded = {"data": "cifar10", "environment": ENVIRONMENT, **run.describe()}
        (run.directory / "recipe.json").write_text(json.dumps(recorded))
        metrics = {measure: score, "parameters": parameters, "epochs": 2, "seconds": 9}
        metrics["test_predicted_classes"] = classes
        (run.directory / "metrics.json").write_text(json.dumps(metrics))
        rows = [f"{i},{score / 2 * (i + 1)},7" for i in range(2)]
        text = "\n".join(["epoch,val_accuracy,seconds", *rows, ""])
        (run.directory / "history.csv").write_text(text)

    train.runs = runs
    return train


def image_run(model="gmlp_n4_32", arguments=None, **settings):
    shared = {"model": model, "data": "cifar10", "recipe": "long", **settings}
    return {**shared, "set_model": arguments or {}}


def cells(path, name):
    """The cells of the line of results.md that begins with the name."""
    (line,) = [ln for ln in path.read_text().splitlines() if ln.startswith(f"| `{name}` |")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_each_line_is_compared_with_the_nearest(train, tmp_path):
    for seed, scores in enumerate([(0.80, 0.83, 0.84, 0.79), (0.82, 0.87, 0.86, 0.80)]):
        split, invariant, heads, amlp = scores
        train(f"split-s{seed}", split, **image_run(seed=seed))
        train(f"toeplitz-s{seed}", invariant, **image_run(arguments={"toeplitz": True}, seed=seed))
        both = {"toeplitz": True, "heads": 8}
        train(f"toeplitz8-s{seed}", heads, **image_run(arguments=both, seed=seed))
        train(f"amlp-s{seed}", amlp, **image_run("amlp_n4_32", seed=seed))
    train("muon", **image_run(set={"optimizer": "muon"}))
    _, paths = write_report(train.runs, tmp_path / "out", "the command")
    assert [path.name for path in paths] == ["results.csv", "results.md", "epochs.png"]
    table = paths[1]
    # Standard deviation of 80 and 82; differences 3 and 5, their error is 1.41 / sqrt(2).
    assert cells(table, "split")[3:] == ["2", "accuracy (%)", "81.00 ± 1.41", "", "", ""]
    row = ["85.00 ± 2.83", "`split`", "toeplitz=True", "+4.00 ± 1.00"]
    assert cells(table, "toeplitz")[5:] == row
    assert cells(table, "toeplitz8")[6:] == ["`toeplitz`", "heads=8", "+0.00 ± 1.00"]
    assert cells(table, "amlp")[6:] == ["`split`", "model=amlp_n4_32", "-1.50 ± 0.50"]
    text = table.read_text()
    assert "- `muon`: 0 epochs so far" in text
    assert "cifar10, recipe `long`, Keras on jax, a processor ()." in text
    assert "Made by `the command`." in text
    rows = read_table(paths[0])
    assert len(rows) == 9
    assert rows[1]["score"] == "83.0"
    assert rows[8]["status"] == "0 epochs so far"


def test_costs_shares_and_failures(train, tmp_path):
    for seed, (whole, half) in enumerate([(0.5, 0.3), (0.7, 0.4)]):
        train(f"a-seed{seed}", whole, **image_run(seed=seed))
        train(f"a-0.5-seed{seed}", half, **image_run(fraction=0.5, seed=seed))
    train("b-seed0", **image_run("vit_n4_32"))
    train.runs[-1].failure = "out of memory"
    (tmp_path / "capacity.png").touch()  # of an earlier report
    costs = {"gmlp_n4_32": {"flops": 2e6, "latency_ms": 0.5}}
    _, paths = write_report(train.runs, tmp_path, costs=costs)
    names = ["results.csv", "results.md", "epochs.png", "costs.png", "fractions.png"]
    assert [path.name for path in paths] == names
    assert not (tmp_path / "capacity.png").exists()
    first, *_, failed = read_table(paths[0])
    assert tuple(first) == COLUMNS
    expected = {"preset": "gmlp_n4_32", "test_accuracy": "0.5", "flops": "2000000.0"}
    assert {**expected, "latency_ms": "0.5", "status": "complete"}.items() <= first.items()
    assert (failed["status"], failed["test_accuracy"]) == ("failed: out of memory", "")
    # The standard deviation of 50 and 70, with n - 1.
    assert cells(paths[1], "a")[5:] == ["60.00 ± 14.14", "", "", "", "2", "0.50"]
    assert cells(paths[1], "a-0.5")[6:9] == ["`a`", "fraction=0.5", "-25.00 ± 5.00"]
    assert "- `b-seed0`: failed: out of memory" in paths[1].read_text()


def test_families_are_drawn_over_their_sizes(train, tmp_path, saved_figures):
    train("gmlp_08", 0.8, **image_run())
    train("gmlp_02", 0.7, parameters=200_000, **image_run(arguments={"dim": 96}))
    train("vit_08", 0.6, **image_run("vit_n4_32"))
    _, paths = write_report(train.runs, tmp_path / "out")
    assert "capacity.png" in [path.name for path in paths]
    (axes,) = saved_figures[-1].axes
    gmlp, vit = axes.lines
    assert list(gmlp.get_xdata()) == pytest.approx([0.2, 0.8])
    assert list(gmlp.get_ydata()) == pytest.approx([70, 80])
    assert (*vit.get_xdata(), *vit.get_ydata()) == pytest.approx((0.8, 60))
    assert {text.get_text() for text in axes.texts} == {"gMLP 80.0", "ViT 60.0"}


def test_held_out_accuracies_are_not_drawn_as_test_accuracies(train, tmp_path, saved_figures):
    train("trial-s0", 0.7, **image_run(validation=0.2))
    _, paths = write_report(train.runs, tmp_path / "out")
    assert [path.name for path in paths] == ["results.csv", "results.md"]
    train("all-s0", 0.8, **image_run())
    write_report(train.runs, tmp_path / "out")
    (axes,) = saved_figures[0].axes
    assert {text.get_text() for text in axes.texts} == {"all 80.0"}


def test_language_models_and_tasks_have_their_own_measures(train, tmp_path):
    entry = {"prepared": "runs/wiki8k", "measure": "test_perplexity"}
    train("gmlp_nano", 40.0, model="gmlp_nano", **entry)
    train("bert_nano", 42.5, model="bert_nano", **entry)
    for name, score in (("gmlp_nano", 0.15), ("bert_nano", 0.25)):
        tuned = {"weights": str(tmp_path / name), "task": "cola"}
        train(f"{name}-cola-0", score, measure="test_matthews_correlation", **tuned)
    _, paths = write_report(train.runs, tmp_path / "out")
    assert [path.name for path in paths] == ["results.csv", "results.md"]
    row = ["perplexity", "42.50", "`gmlp_nano`", "model=bert_nano", "+2.50"]
    assert cells(paths[1], "bert_nano")[4:] == row
    tuned = cells(paths[1], "gmlp_nano-cola")[4:]
    assert tuned == ["Matthews correlation (x 100)", "15.00", "", "", ""]
    row = cells(paths[1], "bert_nano-cola")
    assert (row[6], row[8]) == ("`gmlp_nano-cola`", "+10.00")


def test_images_with_any_number_of_labels_have_their_own_measure(train, tmp_path):
    train("tags", 0.4, measure="test_mean_average_precision", **image_run())
    recorded = {"task": "multi_label_classification", "environment": ENVIRONMENT}
    (tmp_path / "tags" / "recipe.json").write_text(json.dumps({**image_run(), **recorded}))
    _, paths = write_report(train.runs, tmp_path / "out")
    assert cells(paths[1], "tags")[4:6] == ["mean average precision (%)", "40.00"]


def test_runs_that_predict_one_class_are_counted(train, tmp_path):
    for seed, classes in enumerate((2, 1, 1)):
        tuned = {"weights": "runs/lm", "task": "mrpc", "seed": seed}
        train(f"lm-mrpc-{seed}", 0.7, classes=classes, **tuned)
    _, (_, table) = write_report(train.runs, tmp_path / "out")
    assert cells(table, "lm-mrpc")[5] == "70.00 ± 0.00 (2 of 3 predict one class)"
