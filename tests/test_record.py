"""docs/results/record.md, the page on the time to an accuracy: its figures are the records'."""

import json
import re
import shlex
import statistics

from record_files import DOCS, ROOT, error_of, find_seeds, mean_of

from keras_gmlp.comparison.plan import Plan
from keras_gmlp.comparison.time_to_accuracy import measure
from keras_gmlp.training.run_directory import read_history
from keras_gmlp.utils.files import read_json

HELD_OUT_TRIALS = {
    "base": "base",
    "base, RandAugment 0.2": "rand-augment",
    "base, stochastic depth 0.1": "stochastic-depth",
    "base, CutMix in all batches from 50 % on": "cutmix-1",
    "base, random erasing 0.25": "erasing",
    "base, attention pooling": "attention-pooling",
    "base, batches of 128, rate 0.0085": "batch-128",
    "base, weight decay 0.2": "decay-0.2",
    "1 pixel": "crop-0.03",
    "2 pixels": "crop",
    "2 pixels, rate 0.009": "crop-rate-0.009",
    "2 pixels, weight decay 0.05": "crop-decay-0.05",
    "2 pixels, weight decay 0.2": "crop-decay-0.2",
    "2 pixels, weight decay 0.3": "crop-decay-0.3",
    "2 pixels, stem of three, five blocks": "crop-stem-3",
    "2 pixels, stem of four, four blocks": "crop-stem-4",
    "2 pixels, stem of five, four blocks": "crop-stem-5",
    "2 pixels, stem of three, five blocks, weight decay 0.2": "crop-stem-3-decay-0.2",
    "2 pixels, stem of four, four blocks, weight decay 0.2": "crop-stem-4-decay-0.2",
    "2 pixels, stem of five, four blocks, weight decay 0.2": "crop-stem-5-decay-0.2",
    "2 pixels, stem of six, three blocks, weight decay 0.2": "crop-stem-6-decay-0.2",
}
WHOLE_SET_TRIALS = {
    "base": "all-base",
    "2 pixels, stem of four, four blocks": "all-crop-stem-4",
    "2 pixels, stem of three, five blocks, weight decay 0.2": "all-crop-stem-3-decay-0.2",
    "2 pixels, stem of five, four blocks, weight decay 0.2": "all-crop-stem-5-decay-0.2",
    "2 pixels, stem of five, four blocks (*deep stem*)": "all-crop-stem-5",
}


def read_record_page():
    """Returns the page on the time to an accuracy, and its words."""
    page = (DOCS / "results" / "record.md").read_text()
    return page, " ".join(page.split())


def read_rows(text):
    """Returns the cells of the tables in a text without marks of bold type, lists."""
    lines = [line for line in text.splitlines() if re.match(r"\| [^-]", line)]
    return [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in lines]


def test_the_trials_have_the_figures_of_the_records():
    page, words = read_record_page()
    trials = {**HELD_OUT_TRIALS, **{f"all: {k}": v for k, v in WHOLE_SET_TRIALS.items()}}
    rows = [row for row in read_rows(page.split("## Trials")[1]) if row[0] != "setting"]
    rows = [row for row in rows if row[0] != "setting, all training images"]
    assert [row[0] for row in rows] == [*HELD_OUT_TRIALS, *(k.strip("*") for k in WHOLE_SET_TRIALS)]
    for (_, run, seeds, first, last), name in zip(rows, trials.values(), strict=True):
        folders = find_seeds(f"record_trials/runs/{name}")
        tested = mean_of(folders, "test_accuracy")
        assert (run, int(seeds)) == (f"`{name}`", len(folders))
        if name in HELD_OUT_TRIALS.values():
            assert first == f"{mean_of(folders, 'validation_accuracy'):.2f} %"
            assert last == f"{tested:.2f} %"
        else:
            scores = [mean_of([folder], "test_accuracy") for folder in folders]
            assert first == f"{tested:.2f} ± {error_of(scores):.2f} %"
            reached = [measure(folder)["epochs"] for folder in folders]
            assert last == ", ".join(str(epoch or "not reached") for epoch in reached)
    base, deep = (
        find_seeds(f"record_trials/runs/{n}")[:2] for n in ("all-base", "all-crop-stem-5")
    )
    gains = [
        mean_of([b], "test_accuracy") - mean_of([a], "test_accuracy")
        for a, b in zip(base, deep, strict=True)
    ]
    assert "together they give {:.2f} and {:.2f} points".format(*gains) in words
    first = [
        mean_of(find_seeds("record_trials/runs/base")[:1], f"{part}_accuracy")
        for part in ("validation", "test")
    ]
    assert "the base has {:.2f} and {:.2f} %".format(*first) in words
    trained = Plan.read(DOCS / "plans" / "record-trials.json").runs
    held_out = {re.sub(r"-s\d$", "", run.name) for run in trained if run.settings.data.validation}
    assert f"{len(held_out)} settings of 21 epochs" in words
    reached = [measure(run.directory)["epochs"] for run in trained if "all-crop" in run.name]
    assert len(reached) == 11
    assert f"after {max(reached)} epochs at the latest" in words


def read_step_seconds(name, steps):
    """Returns the median seconds of a step in three short runs with so many steps an epoch."""
    folders = [DOCS / f"record/runs/speed-{name}-{seed}" for seed in range(3)]
    rows = [row for folder in folders for row in read_history(folder / "history.csv")]
    assert len(rows) == 6
    return statistics.median(float(row["seconds"]) for row in rows) / steps


def measure_times():
    """Returns the seconds of an epoch of both models, and those to 88.5 % with both seeds."""
    batches = {"standard": 128, "record": 256}
    epochs = [50_000 // size * read_step_seconds(n, 5_000 // size) for n, size in batches.items()]
    places = "families/runs/gmlp_conv_n4_32", "record/runs/deep-stem"
    found = [[measure(folder) for folder in find_seeds(place)] for place in places]
    times = [
        [run["epochs"] * each for run in runs] for runs, each in zip(found, epochs, strict=True)
    ]
    return epochs, times


def test_the_time_to_an_accuracy_has_the_figures_of_the_records():
    page, words = read_record_page()
    rows = read_rows(page.split("## Step by step")[0])[1:]
    places = ["families/runs/gmlp_conv_n4_32", "record/runs/deep-stem"]
    places += ["late_mixing/runs/late-cutmix", "late_mixing/runs/no-mixing"]
    epochs, times = measure_times()
    for i, (row, place) in enumerate(zip(rows, places, strict=True)):
        runs = [measure(folder) for folder in find_seeds(place)]
        shown = ["not reached", str(runs[0]["trained"]), "", ""]
        if i < 2:
            shown[0] = ", ".join(str(run["epochs"]) for run in runs)
            shown[2:] = f"{epochs[i]:.0f}", ", ".join(f"{each:,.0f}" for each in times[i])
        else:
            assert not any(run["epochs"] for run in runs)
        best = ", ".join(f"{100 * run['best']:.2f}" for run in runs) + " %"
        assert row[1:] == [*shown, best]
        if i == 1:
            seconds = "until 88.5 % are {:,.0f} and {:,.0f}."
            assert seconds.format(*(run["seconds"] for run in runs)) in words
    assert f"All 21 epochs, which its schedule needs, take {21 * epochs[1]:,.0f} s" in words


def test_the_time_to_an_accuracy_is_halved():
    _, (usual, deep) = measure_times()
    ratios = [few / many for few, many in zip(deep, usual, strict=True)]
    assert max(ratios) <= 0.5
    assert "takes {:.2f} and {:.2f} of the time".format(*ratios) in read_record_page()[1]
    for page in ("README.md", "CHANGELOG.md"):
        text = " ".join((ROOT / page).read_text().split())
        assert f"[{statistics.mean(ratios):.2f} of the time]" in text


def test_the_share_of_operations_follows_from_the_epochs():
    words = read_record_page()[1]
    operations = map(int, re.search(r"deep stem (\d+) million .*? gMLP (\d+) ", words).groups())
    deep, usual = operations
    places = "record/runs/deep-stem", "families/runs/gmlp_conv_n4_32"
    epochs = [[measure(folder)["epochs"] for folder in find_seeds(place)] for place in places]
    shares = [few * deep / (many * usual) for few, many in zip(*epochs, strict=True)]
    assert "would take {:.2f} and {:.2f} of the time".format(*shares) in words


def test_the_last_step_of_the_record_has_the_figures_of_the_records():
    shown = []
    for seed, folder in enumerate(find_seeds("record/runs/deep-stem")):
        rows = read_history(folder / "history.csv")
        early = (f"{100 * float(rows[epoch - 1]['val_accuracy']):.1f}" for epoch in (8, 12, 16))
        shown.append(
            f"{', '.join(early)}; {mean_of([folder], 'test_accuracy'):.2f} % (seed {seed})"
        )
    text = f"at the end: {shown[0]} and {shown[1]}, "
    text += "with {:.1f} and {:.1f} % of the training images."
    trained = (
        mean_of([folder], "train_accuracy") for folder in find_seeds("record/runs/deep-stem")
    )
    assert text.format(*trained) in read_record_page()[1]


def test_make_record_trains_what_the_plan_names():
    text = (ROOT / "Makefile").read_text().replace("\\\n", " ")
    command = shlex.split(re.search(r"^RECORD := (.*)", text, re.MULTILINE)[1])
    run = read_json(DOCS / "plans" / "record.json")[0]
    places = [i for i, part in enumerate(command) if part.startswith("--")]
    given = [(command[i], command[i + 1]) for i in places]
    named = {key.removeprefix("--"): value for key, value in given}
    assert named["model"] == run["model"]["preset"]
    assert (named["data"], named["recipe"]) == (run["data"], run["recipe"])
    parts = {
        option: dict(v.split("=", 1) for k, v in given if k == option)
        for option in ("--set", "--set-model")
    }
    overrides = {key: json.loads(value) for key, value in parts["--set-model"].items()}
    assert overrides == run["model"]["overrides"]
    changes = {key: json.loads(value) for key, value in parts["--set"].items()}
    for name in ("epochs", "batch_size", "learning_rate"):
        changes[name] = json.loads(named[name.replace("_", "-")])
    assert {**changes, "seed": 0} == run["changes"]
