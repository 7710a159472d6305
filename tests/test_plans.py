"""The plans in docs/plans: trained, and the source of the figures in README and the docs."""

import re
import statistics
from pathlib import Path

import pytest

from keras_gmlp.comparison.plan import Plan
from keras_gmlp.comparison.plan_report import write_report
from keras_gmlp.training.settings import differences
from keras_gmlp.utils.files import read_json

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PLANS = sorted((DOCS / "plans").glob("*.json"))
ROW = r"^\| (\w[\w, -]+?) \|(?: `(\w+)` \|)? ([\d.]+)(?: ± ([\d.]+))? % \| (\d) \| ([\d.]+) %"
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


@pytest.fixture
def in_root(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_every_run_of_a_plan_is_trained(path, in_root):
    plan = Plan.read(path)
    assert plan.runs
    assert all(run.complete for run in plan.runs)
    for run in plan.runs:
        recipe = run.settings.make_recipe()
        wanted = {k: v for k, v in recipe.settings().items() if k != "pipeline"}
        assert not differences(run.recorded, wanted), run.name
        assert len(run.history()) == run.metrics["epochs"] == recipe.epochs


def test_the_report_of_the_families_is_what_the_command_writes(in_root, tmp_path):
    committed = DOCS / "families"
    command = (committed / "results.md").read_text().split("Made by `")[1].split("`")[0]
    write_report("docs/plans/families.json", tmp_path, command)
    for name in ("results.csv", "results.md"):
        assert (tmp_path / name).read_text() == (committed / name).read_text()


@pytest.mark.parametrize(("page", "rows"), [("README.md", 8), ("docs/results/families.md", 9)])
def test_tables_hold_the_figures_of_the_records(page, rows):
    found = re.findall(ROW, (ROOT / page).read_text(), re.MULTILINE)
    assert len(found) == rows
    for name, preset, accuracy, error, seeds, trained in found:
        folders = sorted((DOCS / "families" / "runs").glob(f"{PRESETS[name]}-s*"))
        metrics = [read_json(folder / "metrics.json") for folder in folders]
        scores = [100 * each["test_accuracy"] for each in metrics]
        assert preset in ("", PRESETS[name].removesuffix("_airbench"))
        assert int(seeds) == len(folders)
        assert accuracy == f"{statistics.mean(scores):.2f}"
        if len(scores) > 1:
            assert error == f"{statistics.stdev(scores) / len(scores) ** 0.5:.2f}"
        mean = statistics.mean(100 * each["train_accuracy"] for each in metrics)
        assert trained == f"{mean:.1f}"


def test_settings_of_the_convnet_have_the_figures_of_the_records():
    text = (DOCS / "results" / "convnet.md").read_text().split("## Which settings")[1]
    shown = re.findall(r"\| \*{0,2}([\d.]+) %\*{0,2} \|$", text.split("##")[0], re.MULTILINE)
    folders = (DOCS / "convnet" / "runs").glob("*/metrics.json")
    held_out = [100 * read_json(path)["validation_accuracy"] for path in folders]
    assert shown == [f"{score:.2f}" for score in sorted(held_out, reverse=True)]
