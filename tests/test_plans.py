"""The plans in docs/plans: trained, and the source of the figures in README and the docs."""

import re
import statistics

import pytest
from record_files import DOCS, ROOT, error_of, find_seeds, mean_of, read_accuracies

from keras_gmlp.comparison.plan import Plan
from keras_gmlp.comparison.plan_report import read_trained, write_report
from keras_gmlp.comparison.time_to_accuracy import measure
from keras_gmlp.training.settings import differences
from keras_gmlp.utils.files import read_json

PLANS = sorted((DOCS / "plans").glob("*.json"))
ROW = (
    r"^\| (\w[\w, -]+?) \|(?: `(\w+)` \|)? ([\d.]+)(?: ± ([\d.]+))? % \| (\d) \| "
    r"([\d.]+) % \| ([\d,]+) \|$"
)
PRESETS = {
    "gMLP": "gmlp_conv_n4_32",
    "ConvNet": "convnet_8_32",
    "ResMLP": "resmlp_conv_n4_32",
    "aMLP": "amlp_conv_n4_32",
    "MLP-Mixer": "mixer_conv_n4_32",
    "ViT": "vit_conv_n4_32",
    "Feed-forward-only": "ff_only_conv_n4_32",
    "EAMLP": "eamlp_n4_32",
    "ConvNet, its own recipe": "convnet_8_32_airbench",
}
FAMILIES = [name for name in PRESETS if "," not in name]
PAGE = "docs/results/families.md"
WIDE = {
    "learning rate 0.01, MixUp and CutMix": "wide-mix-low",
    "0.03, cutout": "wide-cutout",
    "0.03, MixUp and CutMix": "wide-mix",
    "0.03, MixUp, CutMix and RandAugment": "wide-mix-ra",
}
RESNETS = {
    "learning rate 0.015, RandAugment 0.2": "resnet-20x4-rate-0.015",
    "0.03, RandAugment 0.2": "resnet-20x4-rate-0.03",
    "0.015, RandAugment 0.4": "resnet-20x4-rand-augment",
}
TRIALS = {
    "learning rate 0.03": "rate-0.03",
    "0.08": "rate-0.08",
    "0.08, AdamW's rate a third": "adam-ratio",
    "0.08, RandAugment, shifts by 4 pixels, 32 epochs": "rand-augment",
    "0.16": "rate-0.16",
    "0.08, batches of 500": "batch-500",
    "0.08, cutout, shifts by 4 pixels": "cutout",
}


@pytest.fixture
def in_root(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_every_run_of_a_plan_is_trained(path, in_root):
    plan = Plan.read(path)
    assert plan.runs
    for run in plan.runs:
        assert run.complete
        wanted = {k: v for k, v in plan.describe(run.settings).items() if k != "pipeline"}
        assert not differences(run.recorded, wanted), run.name
        data = "wiki8k-half" if path.stem == "language" else "cifar10"
        assert (run.recorded["preset"], run.recorded["data"]) == (run.preset, data)
        assert len(run.history()) == run.metrics["epochs"] == wanted["epochs"]


@pytest.mark.parametrize("name", ["capacity", "families", "record-trials"])
def test_a_report_is_what_the_command_writes(name, in_root, tmp_path):
    committed = DOCS / name.replace("-", "_")
    command = (committed / "results.md").read_text().split("Made by `")[1].split("`")[0]
    write_report(read_trained(f"docs/plans/{name}.json"), tmp_path, command)
    for file in ("results.csv", "results.md"):
        assert (tmp_path / file).read_text() == (committed / file).read_text()


@pytest.mark.parametrize(("page", "names"), [("README.md", FAMILIES), (PAGE, PRESETS)])
def test_tables_hold_the_figures_of_the_records(page, names):
    found = re.findall(ROW, (ROOT / page).read_text(), re.MULTILINE)
    assert sorted(row[0] for row in found) == sorted(names)
    for name, preset, accuracy, error, seeds, trained, parameters in found:
        folders = find_seeds(f"families/runs/{PRESETS[name]}")
        metrics = [read_json(folder / "metrics.json") for folder in folders]
        scores = [100 * each["test_accuracy"] for each in metrics]
        assert preset in ("", PRESETS[name].removesuffix("_airbench"))
        assert int(seeds) == len(folders)
        assert accuracy == f"{statistics.mean(scores):.2f}"
        assert error == (f"{error_of(scores):.2f}" if len(scores) > 1 else "")
        assert trained == f"{mean_of(folders, 'train_accuracy'):.1f}"
        assert parameters == f"{metrics[0]['parameters']:,}"


@pytest.mark.parametrize(
    ("family", "folder", "teacher", "shown"),
    [
        ("gMLP", "gmlp_conv_n4_32", "families/runs/convnet_8_32_airbench-s0", True),
        ("aMLP", "amlp_conv_n4_32", "families/runs/convnet_8_32_airbench-s0", True),
        ("ViT", "vit_conv_n4_32", "families/runs/convnet_8_32_airbench-s0", True),
        ("gMLP", "gmlp_conv_n4_32_wide", "convnet/runs/wide-s0", False),
        ("gMLP of 256 tokens", "gmlp_conv_n2_32", "convnet/runs/wide-60", True),
    ],
)
def test_students_and_their_teachers_have_the_figures_of_the_records(
    family, folder, teacher, shown
):
    page, readme = (ROOT / PAGE).read_text(), (ROOT / "README.md").read_text()
    history = (DOCS / "distilled" / "runs" / folder / "history.csv").read_text().splitlines()
    student, teacher = (
        read_json(DOCS / part / "metrics.json") for part in (f"distilled/runs/{folder}", teacher)
    )
    assert len(history) - 1 == student["epochs"]
    accuracies = [100 * each["test_accuracy"] for each in (teacher, student)]
    row = f"| {family} | {accuracies[0]:.2f} % | **{accuracies[1]:.2f} %** |"
    assert f"{row} {100 * student['train_accuracy']:.1f} % |" in page
    assert shown == (f"**{accuracies[1]:.2f} %**" in readme)


def read_section(heading):
    """Returns a section of the page on the ConvNet."""
    text = (DOCS / "results" / "convnet.md").read_text()
    return text.split(f"## {heading}\n")[1].split("\n## ")[0]


@pytest.mark.parametrize(
    ("heading", "trials"),
    [("Which settings", TRIALS), ("Wider", WIDE), ("Wide ResNet", RESNETS)],
)
def test_settings_of_the_convnet_have_the_figures_of_the_records(heading, trials):
    rows = re.findall(r"^\| (.+?) \| \*{0,2}([\d.]+) %", read_section(heading), re.MULTILINE)
    assert [label for label, _ in rows] == list(trials)
    for label, shown in rows:
        metrics = read_json(DOCS / "convnet" / "runs" / trials[label] / "metrics.json")
        assert shown == f"{100 * metrics['validation_accuracy']:.2f}"


@pytest.mark.parametrize(
    ("heading", "name"),
    [("Wider", "wide-s0"), ("Wider", "wide-s1"), ("Wide ResNet", "resnet-20x6")],
)
def test_the_wide_networks_have_the_figures_of_the_records(heading, name):
    metrics, text = read_json(DOCS / f"convnet/runs/{name}/metrics.json"), read_section(heading)
    accuracy = f"{100 * metrics['test_accuracy']:.2f} %"
    assert accuracy in text
    assert f"{metrics['parameters']:,}" in text
    if heading == "Wide ResNet":
        assert f"**{accuracy}" in text
        assert f"**{accuracy}" in (ROOT / "README.md").read_text()
        wrong = {1: "one"}[round(10_000 * (1 - metrics["train_accuracy"]))]
        shown = f"Of 10,000 training images seen without augmentation {wrong} is wrong"
        assert shown in " ".join(text.split())


def test_late_mixing_has_the_figures_of_the_records():
    log = (DOCS / "results" / "log.md").read_text()
    seconds = []
    for label, name in (
        ("no mixing, seed 0", "no-mixing-s0"),
        ("late CutMix, seed 0", "late-cutmix-s0"),
        ("late CutMix, seed 1", "late-cutmix-s1"),
    ):
        folder = DOCS / "late_mixing" / "runs" / name
        metrics, accuracies = read_json(folder / "metrics.json"), read_accuracies(folder)
        shown = [f"{accuracies[epoch - 1]:.1f}" for epoch in (8, 12, 16)]
        shown += [f"{100 * metrics['test_accuracy']:.2f}", f"{max(accuracies):.2f}"]
        shown.append(f"{100 * metrics['train_accuracy']:.1f}")
        assert f"| {label} | {metrics['epochs']} | {' | '.join(shown)} |" in log
        seconds.append(f"{metrics['seconds']:,.0f}")
    assert f"{seconds[0]}, {seconds[1]} and {seconds[2]} s" in " ".join(log.split())


def test_the_epochs_to_88_percent_have_the_figures_of_the_records():
    log = " ".join((DOCS / "results" / "log.md").read_text().split())
    names = ("families/runs/gmlp_conv_n4_32", "late_mixing/runs/late-cutmix")
    usual, late = (
        [measure(folder, 0.88)["epochs"] for folder in find_seeds(name)] for name in names
    )
    assert "88.0 % after {} and {} epochs, 88.5 %".format(*usual) in log
    shares = (f"{few / many:.2f}" for few, many in zip(late, usual, strict=True))
    assert "88.0 % takes {} and {} of the epochs".format(*shares) in log
    assert len(late) == 2
    assert all(measure(folder)["epochs"] is None for folder in find_seeds(names[1]))


def test_the_capacities_have_the_figures_of_the_records():
    page = (DOCS / "results" / "capacity.md").read_text()
    rows, seconds, accuracies = [], [], {}
    for family, name in (("gMLP", "gmlp"), ("ViT", "vit")):
        for size in ("small", "medium", "large"):
            folders = find_seeds(f"capacity/runs/{name}-{size}")
            metrics = [read_json(folder / "metrics.json") for folder in folders]
            scores = [100 * each["test_accuracy"] for each in metrics]
            accuracies[name, size], seconds = scores, seconds + [m["seconds"] for m in metrics]
            rows.append(
                f"| {family}, {size} | {metrics[0]['parameters']:,} | {statistics.mean(scores):.2f}"
                f" ± {error_of(scores):.2f} % | {mean_of(folders, 'train_accuracy'):.1f} % |"
            )
    assert len(seconds) == 12
    assert [line for line in page.splitlines() if re.match(r"\| (gMLP|ViT)", line)] == rows
    words = " ".join(page.split())
    small, medium, large = (
        statistics.mean(accuracies["gmlp", size]) for size in ("small", "medium", "large")
    )
    assert f"{medium - small:.1f}, then {large - medium:.1f} points" in words
    pairs = zip(accuracies["vit", "medium"], accuracies["vit", "large"], strict=True)
    assert "has {:.2f} and {:.2f} points less".format(*(a - b for a, b in pairs)) in words
    assert f"{min(seconds):.0f} to {max(seconds):.0f} s each" in words
