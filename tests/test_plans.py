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
GATES = {  # rows of the paper's table 3, and its perplexities
    "aMLP": ("amlp", ""),
    "gMLP, split": ("gmlp", "4.35"),
    "gMLP, additive": ("gmlp_additive", "4.97"),
    "gMLP, multiplicative": ("gmlp_multiplicative", "4.53"),
    "gMLP, linear": ("gmlp_linear", "5.14"),
    "BERT, relative positions, no attention": ("bert_no_attention", "5.64"),
    "BERT, relative positions": ("bert-rate-0.002", "4.26"),
    "BERT, learned positions": ("bert_positions-rate-0.002", "4.37"),
}
RATES = {
    "BERT, relative positions": "bert",
    "BERT, learned positions": "bert_positions",
    "BERT, relative positions, no attention": "bert_no_attention",
}
SHORT = {"BERT, no attention": "BERT, relative positions, no attention"}  # in the table of pairs
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


def test_the_report_of_the_families_is_what_the_command_writes(in_root, tmp_path):
    committed = DOCS / "families"
    command = (committed / "results.md").read_text().split("Made by `")[1].split("`")[0]
    write_report("docs/plans/families.json", tmp_path, command)
    for name in ("results.csv", "results.md"):
        assert (tmp_path / name).read_text() == (committed / name).read_text()


@pytest.mark.parametrize(("page", "names"), [("README.md", FAMILIES), (PAGE, PRESETS)])
def test_tables_hold_the_figures_of_the_records(page, names):
    found = re.findall(ROW, (ROOT / page).read_text(), re.MULTILINE)
    assert sorted(row[0] for row in found) == sorted(names)
    for name, preset, accuracy, error, seeds, trained, parameters in found:
        folders = sorted((DOCS / "families" / "runs").glob(f"{PRESETS[name]}-s*"))
        metrics = [read_json(folder / "metrics.json") for folder in folders]
        scores = [100 * each["test_accuracy"] for each in metrics]
        assert preset in ("", PRESETS[name].removesuffix("_airbench"))
        assert int(seeds) == len(folders)
        assert accuracy == f"{statistics.mean(scores):.2f}"
        spread = statistics.stdev(scores) / len(scores) ** 0.5 if len(scores) > 1 else None
        assert error == ("" if spread is None else f"{spread:.2f}")
        assert trained == f"{statistics.mean(100 * each['train_accuracy'] for each in metrics):.1f}"
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


@pytest.mark.parametrize(
    ("heading", "trials"),
    [("Which settings", TRIALS), ("Wider", WIDE), ("Wide ResNet", RESNETS)],
)
def test_settings_of_the_convnet_have_the_figures_of_the_records(heading, trials):
    text = (DOCS / "results" / "convnet.md").read_text().split(f"## {heading}\n")[1]
    rows = re.findall(r"^\| (.+?) \| \*{0,2}([\d.]+) %", text.split("## ")[0], re.MULTILINE)
    assert [label for label, _ in rows] == list(trials)
    for label, shown in rows:
        metrics = read_json(DOCS / "convnet" / "runs" / trials[label] / "metrics.json")
        assert shown == f"{100 * metrics['validation_accuracy']:.2f}"


def test_the_wide_convnet_has_the_figures_of_the_records():
    text = (DOCS / "results" / "convnet.md").read_text().split("## Wider\n")[1].split("\n## ")[0]
    for seed in (0, 1):
        metrics = read_json(DOCS / "convnet" / "runs" / f"wide-s{seed}" / "metrics.json")
        assert f"{100 * metrics['test_accuracy']:.2f} %" in text
        assert f"{metrics['parameters']:,}" in text


def test_the_wide_resnet_has_the_figures_of_the_record():
    metrics = read_json(DOCS / "convnet/runs/resnet-20x6/metrics.json")
    text = (DOCS / "results" / "convnet.md").read_text().split("## Wide ResNet\n")[1]
    text, readme = text.split("\n## ")[0], (ROOT / "README.md").read_text()
    for page in (text, readme):
        assert f"**{100 * metrics['test_accuracy']:.2f} %" in page
    assert f"{metrics['parameters']:,}" in text
    wrong = {1: "one"}[round(10_000 * (1 - metrics["train_accuracy"]))]
    shown = f"Of 10,000 training images seen without augmentation {wrong} is wrong"
    assert shown in " ".join(text.split())


@pytest.fixture
def gates():
    page = (DOCS / "results" / "language.md").read_text()
    return page.split("## Gates and attention, micro\n")[1].split("\n## ")[0]


def read_perplexity(name):
    return read_json(DOCS / "language" / "runs" / name / "metrics.json")["test_perplexity"]


def name_seeds(name):
    """Returns the names of the runs with both seeds."""
    return (name if "rate" in name else f"{name}-0"), f"{name}-1"


def read_seeds(name):
    return [read_perplexity(run) for run in name_seeds(name)]


def test_gates_have_the_figures_of_the_records(gates):
    text = gates
    row = r"^\| (.+?) \| ([\d.]*) ?\| ([\d,]+) \| ([\d.]+) \| ([\d.]+) \| (.+?) \|$"
    rows = re.findall(row, text, re.MULTILINE)
    assert [label for label, *_ in rows] == list(GATES)
    for label, paper, parameters, *shown in rows:
        name, published = GATES[label]
        scores = read_seeds(name)
        error = abs(scores[0] - scores[1]) / 2  # of the mean of two
        run = read_json(DOCS / "language/runs" / name_seeds(name)[0] / "metrics.json")
        assert (paper, parameters) == (published, f"{run['parameters']:,}")
        expected = f"{statistics.mean(scores):.1f} ± {error:.1f}"
        assert shown == [*(f"{score:.1f}" for score in scores), expected]
    (rates,) = re.findall(r"was below 700: (.+?)\. So", text, re.DOTALL)
    rates = re.findall(r"\d{3}", rates.replace("0.001, 0.003 and 0.006", ""))
    assert len(rates) == 9
    for family, rate in (("gmlp", "0.003"), ("amlp", "0.006"), ("bert", "0.003")):
        trials = {
            folder.name.split("-")[2]: read_json(folder / "metrics.json")["test_perplexity"]
            for folder in (DOCS / "language" / "runs").glob(f"rate-{family}-*")
        }
        assert len(trials) == 3
        assert min(trials, key=trials.get) == rate
        for trial in trials.values():
            assert f"{trial:.0f}" in rates


def test_pairs_of_gates_follow_from_the_table(gates):
    row = r"^\| (\w.+?) \| (\w.+?) \| ([\d.]+) ± ([\d.]+)( the other way)? \| (.+?) \|$"
    rows = re.findall(row, gates, re.MULTILINE)
    assert len(rows) == 6
    for better, worse, *shown, reverse, verdict in rows:
        pair = [read_seeds(GATES[SHORT.get(name, name)][0]) for name in (better, worse)]
        difference = statistics.mean(pair[1]) - statistics.mean(pair[0])
        error = sum((abs(a - b) / 2) ** 2 for a, b in pair) ** 0.5
        assert shown == [f"{abs(difference):.1f}", f"{error:.1f}"]
        assert bool(reverse) == (difference < 0)
        kind = "open" if abs(difference) < 2 * error else "reverse seen" if reverse else "seen"
        assert re.split("[,;]", verdict)[0] == kind


def test_rates_depths_and_tasks_have_the_figures_of_the_records(gates):
    for label, name in RATES.items():
        found = [read_perplexity(f"{name}-rate-{rate}") for rate in ("0.0005", "0.001", "0.002")]
        found.append(read_perplexity(f"{name}-0"))
        shown = [f"{each:.1f}" for each in found]
        shown[found.index(min(found))] = f"**{min(found):.1f}**"
        second = (f"{read_perplexity(f'{name}{other}'):.1f}" for other in ("-rate-0.002-1", "-1"))
        assert f"| {label} | {' | '.join([*shown, *second])} |" in gates
    assert f"help ({read_perplexity('bert-rate-0.001-float32'):.1f} at 0.001" in gates
    depths = [read_perplexity(n) for n in ("depth-gmlp-6", "gmlp-0", "depth-gmlp-24")]
    depths.append(read_perplexity("depth-gmlp-48"))
    assert f"| perplexity | {' | '.join(f'{each:.1f}' for each in depths)} |" in gates
    assert f"has {read_perplexity('depth-bert-5'):.1f} at" in gates
    scores = {
        task: [
            100 * read_json(DOCS / f"language/tasks/gmlp-{task}-{s}/metrics.json")["test_accuracy"]
            for s in (0, 1)
        ]
        for task in ("sst2", "mrpc")
    }
    shown = [
        f"{statistics.mean(two):.1f} ± {abs(two[0] - two[1]) / 2:.1f} %" for two in scores.values()
    ]
    assert f"| gMLP, split | {' | '.join(shown)} |" in gates
    for label, name in list(RATES.items())[1:]:
        run = read_json(DOCS / f"language/tasks/{name}-sst2-0/metrics.json")
        assert f"| {label} | {100 * run['test_accuracy']:.1f} % | |" in gates


def describe_negations(folder):
    """Returns cells of a table: first sentences, positive ones, calibration, second sentences."""
    first, second = (
        read_json(DOCS / "language" / folder / f"negation{n}.json")["models"][0] for n in ("", "-2")
    )
    recalls = {each["label"]: each["recall"] for each in first["classes"]}
    figures = first["accuracy"], recalls["positive"], first["calibration_error"], second["accuracy"]
    return [f"{100 * figure:.1f} %" for figure in figures]


def test_the_included_classifier_of_texts_has_the_figures_of_the_records():
    text = (DOCS / "results/language.md").read_text()
    metrics = read_json(ROOT / "saved_models/amlp_nano-sst2/metrics.json")
    accuracy, fitted = 100 * metrics["test_accuracy"], metrics["calibration"]
    before, after = fitted["calibration_error_before"], fitted["calibration_error"]
    exported = metrics["exports"]["tflite"]
    assert f"validation texts | **{accuracy:.2f} %** | 84.5 %" in text
    assert (
        f"**{100 * exported['accuracy']:.2f} %**, {100 * exported['top1_agreement']:.1f} %" in text
    )
    assert f"**{100 * after:.2f} %** ({100 * before:.2f} % before) | 4 %" in text
    assert accuracy >= 84.5
    assert after <= 0.04
    trials = [metrics]
    trials += [
        read_json(DOCS / f"language/sst2-trials/{name}/metrics.json")
        for name in ("plain", "smooth", "drop")
    ]
    rows = re.findall(
        r"^\| (?:second|first).*? \| [\d.]+ \| [\d.]+ \| (.+) \|$", text, re.MULTILINE
    )
    for row, trial in zip(rows, trials, strict=True):
        shares = [100 * trial[name] for name in ("validation_accuracy", "test_accuracy")]
        errors = "not measured"
        if found := trial.get("calibration"):
            errors = [100 * found[f"calibration_error{when}"] for when in ("_before", "")]
            errors = f"{errors[0]:.2f}, {errors[1]:.2f} %"
        assert row == f"{shares[0]:.2f} % | {shares[1]:.2f} % | {errors}"
    *first, second = describe_negations("amlp_nano-sst2")
    cells = f"**{first[0]}** | {first[1]} | {first[2]} | **{second}** | **{accuracy:.2f} %**"
    assert f"included: second templates | {cells} |" in text
    smooth = f"{100 * trials[2]['test_accuracy']:.2f} %"
    assert (
        f"labels smoothed | {' | '.join([*describe_negations('sst2-trials/smooth'), smooth])} |"
        in text
    )


def test_answers_and_tasks_of_the_language_model_have_the_figures_of_the_records():
    text = (DOCS / "results/language.md").read_text()
    nano = {name: DOCS / f"language/tasks/nano-{name}-0/metrics.json" for name in ("cola", "mrpc")}
    cola, mrpc = (read_json(path) for path in nano.values())
    assert f"| CoLA, Matthews correlation | **{cola['test_matthews_correlation']:.3f}** |" in text
    assert f"| MRPC, accuracy | **{100 * mrpc['test_accuracy']:.1f} %** (" in text
    answers = read_json(DOCS / "language/squad-0/metrics.json")
    assert f"**F1 {answers['test_f1']:.1f}**, exact match {answers['test_exact_match']:.1f}" in text


def test_the_included_language_model_and_the_negations_have_the_figures_of_the_records():
    text, readme = (path.read_text() for path in (DOCS / "results/language.md", ROOT / "README.md"))
    included = read_json(ROOT / "saved_models/amlp_nano-wiki/metrics.json")
    perplexity, accuracy = included["test_perplexity"], 100 * included["test_accuracy"]
    assert f"| 235M | bfloat16 | **{perplexity:.2f}** | {accuracy:.1f} % |" in text
    assert f"perplexity {perplexity:.1f}." in readme
    recipe = read_json(ROOT / "saved_models/amlp_nano-wiki/recipe.json")
    assert round(recipe["epochs"] * recipe["epoch_tokens"] / 1e6) == 235
    found = read_json(DOCS / "language/negations-0/negation.json")["models"][0]
    trained = read_json(DOCS / "language/negations-0/metrics.json")
    recalls = {each["label"]: each["recall"] for each in found["classes"]}
    figures = [found["accuracy"], recalls["positive"], found["calibration_error"]]
    row = " | ".join(f"{100 * figure:.1f} %" for figure in figures)
    assert f"| {row} | | {100 * trained['test_accuracy']:.2f} % |" in text
