"""docs/results/record.md, the page on the time to an accuracy: its figures are the records'."""

import json
import re
import shlex
import statistics

import pytest
from record_files import DOCS, ROOT, error_of, find_seeds, mean_of, read_accuracies

import keras_gmlp
from keras_gmlp.comparison.plan import Plan
from keras_gmlp.comparison.time_to_accuracy import measure
from keras_gmlp.evaluation.flops import count_flops
from keras_gmlp.training.run_directory import read_history
from keras_gmlp.utils.files import read_json

FAMILIES, DEEP = "families/runs/gmlp_conv_n4_32", "record/runs/deep-stem"
LATE, PLAIN = "late_mixing/runs/late-cutmix", "late_mixing/runs/no-mixing"
BASE = {"epochs": 21, "batch_size": 256, "learning_rate": 0.012, "mixup": 0.0, "cutmix": 0.5}
BASE |= {"alternating_flip": True, "mix_from": 0.4}
# What the words of the tables set: changes of the recipe, or arguments of the model.
CHANGES = {
    "base": {},
    "RandAugment 0.2": {"rand_augment": 0.2},
    "stochastic depth 0.1": {"stochastic_depth": 0.1},
    "CutMix in all batches from 50 % on": {"cutmix": 1.0, "mix_from": 0.5},
    "random erasing 0.25": {"erasing": 0.25},
    "batches of 128": {"batch_size": 128},
    "rate 0.0085": {"learning_rate": 0.0085},
    "rate 0.009": {"learning_rate": 0.009},
    "weight decay 0.05": {"weight_decay": 0.05},
    "weight decay 0.2": {"weight_decay": 0.2},
    "weight decay 0.3": {"weight_decay": 0.3},
    "1 pixel": {"crop": 0.03125},
    "2 pixels": {"crop": 0.0625},
}
ARGUMENTS = {
    "attention pooling": {"pooling": "attention"},
    "stem of three": {"stem_arguments": {"depth": 3}},
    "stem of four": {"stem_arguments": {"depth": 4}},
    "stem of five": {"stem_arguments": {"depth": 5}},
    "stem of six": {"stem_arguments": {"depth": 6}},
    "three blocks": {"depth": 3},
    "four blocks": {"depth": 4},
    "five blocks": {"depth": 5},
}


@pytest.fixture(autouse=True)
def in_root(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.fixture
def page():
    return (DOCS / "results" / "record.md").read_text()


@pytest.fixture
def words(page):
    """The page without breaks of lines."""
    return " ".join(page.split())


def read_cells(text, head):
    """Returns the cells of the table whose first line begins with a text, without bold type."""
    lines = text.split(f"| {head} |")[1].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in lines]


def read_plan():
    """Returns the runs of the trials by their names without the seed, lists."""
    runs = {}
    for run in Plan.read(DOCS / "plans" / "record-trials.json").runs:
        runs.setdefault(re.sub(r"-s\d$", "", run.name), []).append(run)
    return runs


def test_the_words_of_a_trial_are_its_settings(page):
    runs = read_plan()
    rows = read_cells(page, "setting") + read_cells(page, "setting, all training images")
    assert len(rows) == 26
    for label, name, *_ in rows:
        parts = label.removesuffix(" (*deep stem*)").split(", ")
        changes, arguments = dict(BASE), {}
        for part in parts:
            changes |= CHANGES.get(part, {})
            arguments |= ARGUMENTS.get(part, {})
            assert part in CHANGES or part in ARGUMENTS
        for run in runs[name.strip("`")]:
            assert run.settings.changes == {**changes, "seed": run.seed}
            assert run.settings.model.overrides == arguments
            assert run.settings.data.validation == (None if "all-" in name else 0.2)


def test_trials_on_held_out_images_have_the_figures_of_the_records(page, words):
    runs = read_plan()
    for _, name, seeds, held_out, tested in read_cells(page, "setting"):
        folders = [run.directory for run in runs[name.strip("`")]]
        assert int(seeds) == len(folders)
        assert held_out == f"{mean_of(folders, 'validation_accuracy'):.2f} %"
        assert tested == f"{mean_of(folders, 'test_accuracy'):.2f} %"
    held_out = {name: of for name, of in runs.items() if not name.startswith("all-")}
    assert f"{len(held_out)} settings of 21 epochs" in words
    scores = {
        name: [mean_of([run.directory], "validation_accuracy") for run in of]
        for name, of in held_out.items()
    }
    widest = max(max(each) - min(each) for each in scores.values())
    assert f"seeds of one setting differ by up to {widest:.1f} points" in words
    first = [mean_of([runs["base"][0].directory], f"{x}_accuracy") for x in ("validation", "test")]
    assert "with which the base has {:.2f} and {:.2f} %".format(*first) in words
    less = [first[0] - scores[name][0] for name in ("cutmix-1", "rand-augment")]
    assert f"has {less[0]:.2f} points less than the base with that seed" in words
    assert f"and RandAugment {less[1]:.2f}" in words
    for name in ("cutmix-1", "rand-augment"):
        assert f"{mean_of([runs[name][0].directory], 'train_accuracy'):.0f}" == "92"


def test_trials_on_all_images_have_the_figures_of_the_records(page, words):
    runs, scores, reached = read_plan(), {}, {}
    for _, name, seeds, tested, epochs in read_cells(page, "setting, all training images"):
        name = name.strip("`")
        folders = [run.directory for run in runs[name]]
        scores[name] = [mean_of([folder], "test_accuracy") for folder in folders]
        reached[name] = [measure(folder)["epochs"] for folder in folders]
        assert int(seeds) == len(folders)
        mean, error = statistics.mean(scores[name]), error_of(scores[name])
        assert tested == f"{mean:.2f} ± {error:.2f} %"
        assert epochs == ", ".join(str(epoch or "not reached") for epoch in reached[name])
    gains = [scores["all-crop-stem-5"][i] - scores["all-base"][i] for i in range(2)]
    assert "together they give {:.2f} and {:.2f} points".format(*gains) in words
    assert not any(reached.pop("all-base"))
    found = [epoch for epochs in reached.values() for epoch in epochs]
    assert len(found) == 11  # "all eleven runs"
    assert f"after {max(found)} epochs at the latest" in words
    assert min(reached, key=lambda name: statistics.mean(reached[name])) == "all-crop-stem-5"


def read_step_seconds(name, steps):
    """Returns the median seconds of a step in three short runs with so many steps an epoch."""
    folders = [DOCS / f"record/runs/speed-{name}-{seed}" for seed in range(3)]
    rows = [row for folder in folders for row in read_history(folder / "history.csv")]
    assert len(rows) == 6
    return statistics.median(float(row["seconds"]) for row in rows) / steps


@pytest.fixture
def epoch_seconds():
    """Seconds of an epoch of the gMLP of the families, and of the deep stem."""
    sizes = {"standard": 128, "record": 256}
    return [50_000 // size * read_step_seconds(n, 5_000 // size) for n, size in sizes.items()]


@pytest.fixture
def times(epoch_seconds):
    """Seconds to 88.5 % of both with two seeds."""
    pairs = zip((FAMILIES, DEEP), epoch_seconds, strict=True)
    return [[measure(x)["epochs"] * each for x in find_seeds(place)] for place, each in pairs]


def test_the_table_of_times_has_the_figures_of_the_records(page, words, epoch_seconds, times):
    rows = read_cells(page, "run")
    for i, (row, place) in enumerate(zip(rows, (FAMILIES, DEEP, LATE, PLAIN), strict=True)):
        runs = [measure(folder) for folder in find_seeds(place)]
        shown = ["not reached", str(runs[0]["trained"]), "", ""]
        if i < 2:
            shown[0] = ", ".join(str(run["epochs"]) for run in runs)
            shown[2:] = f"{epoch_seconds[i]:.0f}", ", ".join(f"{each:,.0f}" for each in times[i])
        else:
            assert not any(run["epochs"] for run in runs)
        best = ", ".join(f"{100 * run['best']:.2f}" for run in runs) + " %"
        assert row[1:] == [*shown, best]
    usual, deep = epoch_seconds
    text = "21 and 48 epochs, take {:,.0f} and {:,.0f} s: {:.2f}."
    assert text.format(21 * deep, 48 * usual, 21 * deep / (48 * usual)) in words
    seconds = [measure(folder)["seconds"] for folder in find_seeds(DEEP)]
    assert "until 88.5 % are {:,.0f} and {:,.0f}.".format(*seconds) in words
    earlier = measure(find_seeds(FAMILIES)[0])["epoch_seconds"]
    assert f"took {earlier:.0f} s for an epoch (median)" in words


def test_the_time_to_an_accuracy_is_halved(words, times):
    ratios = [deep / usual for usual, deep in zip(*times, strict=True)]
    assert max(ratios) <= 0.5
    assert "takes {:.2f} and {:.2f} of the time".format(*ratios) in words
    for name in ("README.md", "CHANGELOG.md"):
        text = " ".join((ROOT / name).read_text().split())
        assert f"[{statistics.mean(ratios):.2f} of the time]" in text


def test_the_operations_are_those_of_the_models(words, tmp_path):
    deep = read_json(DOCS / "plans" / "record.json")[0]["model"]
    counted = []
    for preset, arguments in ((deep["preset"], deep["overrides"]), ("gmlp_conv_n4_32", {})):
        keras_gmlp.build(preset, **arguments).save(tmp_path / "model.keras")
        counted.append(count_flops(tmp_path / "model.keras") / 1e6)
    text = "deep stem {:.0f} million operations, the families' gMLP {:.0f}"
    assert text.format(*counted) in words
    epochs = [[measure(x)["epochs"] for x in find_seeds(place)] for place in (DEEP, FAMILIES)]
    shares = [few * counted[0] / (many * counted[1]) for few, many in zip(*epochs, strict=True)]
    assert "would take {:.2f} and {:.2f} of the time".format(*shares) in words


def test_the_steps_have_the_figures_of_the_records(words):
    (plain,), late, deep = (find_seeds(place) for place in (PLAIN, LATE, DEEP))
    after = read_accuracies(plain)
    assert f"after 8 and 16 epochs: {after[7]:.1f} and {after[15]:.1f} %" in words
    end = [mean_of([plain], f"{part}_accuracy") for part in ("test", "train")]
    assert "ends at {:.2f} %, with {:.1f} % of the training images".format(*end) in words
    end = (mean_of([folder], "test_accuracy") for folder in late)
    assert "{:.2f} and {:.2f} % at the end".format(*end) in words
    shown = []
    for seed, folder in enumerate(deep):
        after = read_accuracies(folder)
        early = ", ".join(f"{after[epoch - 1]:.2f}" for epoch in (8, 12, 16))
        shown.append(f"{early}; {mean_of([folder], 'test_accuracy'):.2f} % (seed {seed})")
    trained = " and ".join(f"{mean_of([folder], 'train_accuracy'):.1f}" for folder in deep)
    text = f"at the end: {' and '.join(shown)}, with {trained} % of the training images."
    assert text in words


def test_make_record_trains_what_the_plan_names():
    text = (ROOT / "Makefile").read_text().replace("\\\n", " ")
    command = shlex.split(re.search(r"^RECORD := (.*)", text, re.MULTILINE)[1])
    assert all(name.startswith("--") for name in command[::2])
    given = list(zip(command[::2], command[1::2], strict=True))
    named = dict(given)
    changes, overrides = (
        {key: json.loads(v) for k, each in given if k == option for key, v in [each.split("=", 1)]}
        for option in ("--set", "--set-model")
    )
    for name in ("epochs", "batch_size", "learning_rate"):
        changes[name] = json.loads(named[f"--{name.replace('_', '-')}"])
    run = read_json(DOCS / "plans" / "record.json")[0]
    assert {"preset": named["--model"], "overrides": overrides} == run["model"]
    assert (named["--data"], named["--recipe"]) == (run["data"], run["recipe"])
    assert {**changes, "seed": 0} == run["changes"]
    recorded = read_json(find_seeds(DEEP)[0] / "recipe.json")
    assert named["--precision"] == recorded["precision"]
    assert named["--backend"] == recorded["environment"]["backend"]
