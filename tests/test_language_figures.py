"""The figures of docs/results/language.md come from the records in docs/language."""

import math
import re
import statistics
from pathlib import Path

import pytest

from keras_gmlp.training.run_directory import read_history
from keras_gmlp.utils.files import read_json

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
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
FINE_TUNINGS = (  # the trials of the included classifier: their templates, and their records
    ("fourth, included", "amlp_nano-sst2"),
    ("fourth, seed 1", "sst2-trials/fourth-seed1"),
    ("third", "sst2-trials/third-smooth05"),
    ("third, averaged weights", "sst2-trials/third-average"),
    ("third", "sst2-trials/third"),
    ("third, seed 1", "sst2-trials/third-seed1"),
    ("third", "sst2-trials/third-smooth15"),
    ("second", "sst2-trials/second"),
    ("first", "sst2-trials/plain"),
    ("first", "sst2-trials/smooth"),
    ("first", "sst2-trials/drop"),
)
NEGATIONS = {
    "`amlp_nano-wiki` with the first templates, three epochs": "negations-0",
    "first templates, two epochs, labels smoothed by 0.1": "sst2-trials/smooth",
    "second templates, labels smoothed by 0.1": "sst2-trials/second",
    "third templates, labels smoothed by 0.1": "sst2-trials/third",
    "the same, seed 1": "sst2-trials/third-seed1",
    "the same, labels smoothed by 0.15": "sst2-trials/third-smooth15",
    "the same, labels smoothed by 0.05": "sst2-trials/third-smooth05",
    "the same, labels smoothed by 0.05, averaged weights": "sst2-trials/third-average",
    "fourth templates, labels smoothed by 0.05, seed 1": "sst2-trials/fourth-seed1",
    "`amlp_nano-sst2`, included: the same, seed 0": "amlp_nano-sst2",
}


@pytest.fixture
def gates():
    page = (DOCS / "results" / "language.md").read_text()
    return page.split("## Gates and attention, micro\n")[1].split("\n## ")[0]


def read_perplexity(name):
    return read_json(DOCS / "language" / "runs" / name / "metrics.json")["test_perplexity"]


def read_validation(name, epochs):
    """Returns the perplexity of the validation texts after some epochs, rounded."""
    rows = read_history(DOCS / "language" / "runs" / name / "history.csv")
    return round(math.exp(float(rows[epochs - 1]["val_loss"])))


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
    check_depths(["depth-gmlp-6", "gmlp-0", "depth-gmlp-24", "depth-gmlp-48"], gates)
    depths = [
        "../depth/bert-5",
        "../tasks/bert-pretrained",
        "../depth/bert-18",
        "../depth/bert-36",
    ]
    check_depths(depths, gates)
    slow = (read_perplexity(name) for name in ("depth-bert-5", "bert-rate-0.001"))
    assert "5 and 9 blocks have {:.1f} and {:.1f}".format(*slow) in gates
    for epochs, sentence in (
        (2, "perplexities of {}, {}, {} and"),
        (3, "after three {}, {}, {} and"),
    ):
        after = [read_validation(each, epochs) for each in depths]
        assert (sentence + " {}").format(*after) in " ".join(gates.split())
    nine = [read_perplexity(f"bert-rate-0.002{seed}") for seed in ("-1", "")]
    nine = [read_perplexity(depths[1]), *nine]
    assert "have {:.1f} (in PyTorch), {:.1f} and {:.1f} (in JAX)".format(*nine) in gates


def check_depths(names, text):
    """Checks the two rows of a table of depths."""
    records = [read_json(DOCS / "language/runs" / name / "metrics.json") for name in names]
    shown = [f"{record['test_perplexity']:.1f}" for record in records]
    sizes = [f"{record['parameters']:,}" for record in records]
    assert f"| perplexity | {' | '.join(shown)} |\n| parameters | {' | '.join(sizes)} |" in text


def test_tasks_have_the_figures_of_the_records():
    text, tasks = (DOCS / "results/language.md").read_text(), DOCS / "language/tasks"
    rows = {"amlp": "aMLP", "gmlp": "gMLP, split", "bert": "BERT, relative positions"}
    rows["bert_no_attention"] = "BERT, relative positions, no attention"
    rows["bert_positions"] = "BERT, learned positions"
    for name, label in rows.items():
        shown = [read_perplexity("gmlp-0")]
        if name != "gmlp":
            shown = [read_json(tasks / f"{name}-pretrained/metrics.json")["test_perplexity"]]
        shown = [f"{shown[0]:.1f}"]
        for task in ("sst2", "mrpc"):
            records = [read_json(tasks / f"{name}-{task}-{seed}/metrics.json") for seed in (0, 1)]
            two = [100 * record["test_accuracy"] for record in records]
            shown.append(f"{statistics.mean(two):.1f} ± {abs(two[0] - two[1]) / 2:.1f} %")
        assert f"| {label} | {' | '.join(shown)} |" in text


def read_trial(folder, name="metrics.json"):
    """Returns a record of a trial; those of the included model are in saved_models."""
    root = ROOT / "saved_models" if folder == "amlp_nano-sst2" else DOCS / "language"
    return read_json(root / folder / name)


def test_the_included_classifier_of_texts_has_the_figures_of_the_records():
    text = (DOCS / "results/language.md").read_text()
    metrics = read_trial("amlp_nano-sst2")
    accuracy, fitted = 100 * metrics["test_accuracy"], metrics["calibration"]
    before, after = fitted["calibration_error_before"], fitted["calibration_error"]
    exported = metrics["exports"]["tflite"]
    assert f"validation texts | **{accuracy:.2f} %** | 84.5 %" in text
    assert (
        f"**{100 * exported['accuracy']:.2f} %**, {100 * exported['top1_agreement']:.1f} %" in text
    )
    assert f"**{100 * after:.2f} %** ({100 * before:.2f} % before) | 4 %" in text
    assert f"The temperature, {fitted['temperature']:.2f}," in text
    assert f" as in Keras | {accuracy - 0.5:.2f} % |" in text
    assert accuracy >= 84.5
    assert after <= 0.04


def test_trials_have_the_figures_of_the_records():
    text = (DOCS / "results/language.md").read_text()
    row = r"^\| ((?:fourth|third|second|first)[\w, ]*) \| ([\d.]+) \| ([\d.]+) \| (.+) \|$"
    rows = re.findall(row, text, re.MULTILINE)
    assert [label for label, *_ in rows] == [label for label, _ in FINE_TUNINGS]
    for (_, *settings, shown), (_, folder) in zip(rows, FINE_TUNINGS, strict=True):
        trial, recipe = read_trial(folder), read_trial(folder, "recipe.json")
        assert list(map(float, settings)) == [recipe["label_smoothing"], recipe["dropout"]]
        shares = [100 * trial[name] for name in ("validation_accuracy", "test_accuracy")]
        errors = "not measured"
        if found := trial.get("calibration"):
            errors = [100 * found[f"calibration_error{when}"] for when in ("_before", "")]
            errors = f"{errors[0]:.2f}, {errors[1]:.2f} %"
        assert shown == f"{shares[0]:.2f} % | {shares[1]:.2f} % | {errors}"


def test_negations_have_the_figures_of_the_records():
    text = (DOCS / "results/language.md").read_text().split("## Negation\n")[1].split("\n## ")[0]
    for label, folder in NEGATIONS.items():
        found = [DOCS / "language" / folder / f"negation{n}.json" for n in ("", "-2", "-3", "-4")]
        shares = [
            f" {100 * read_json(path)['models'][0]['accuracy']:.1f} % " if path.exists() else " "
            for path in found
        ]
        accuracy = f" {100 * read_trial(folder)['test_accuracy']:.2f} % "
        assert "|".join([f"| {label} ", *shares, accuracy, "\n"]) in f"{text}\n"


def test_answers_and_tasks_of_the_language_model_have_the_figures_of_the_records():
    text = (DOCS / "results/language.md").read_text()
    nano = {name: DOCS / f"language/tasks/nano-{name}-0/metrics.json" for name in ("cola", "mrpc")}
    cola, mrpc = (read_json(path) for path in nano.values())
    assert f"| CoLA, Matthews correlation | **{cola['test_matthews_correlation']:.3f}** |" in text
    assert f"| MRPC, accuracy | **{100 * mrpc['test_accuracy']:.1f} %** (" in text
    answers = read_json(DOCS / "language/squad-0/metrics.json")
    assert f"**F1 {answers['test_f1']:.1f}**, exact match {answers['test_exact_match']:.1f}" in text


def test_the_included_language_model_has_the_figures_of_the_records():
    text, readme = (path.read_text() for path in (DOCS / "results/language.md", ROOT / "README.md"))
    included = read_json(ROOT / "saved_models/amlp_nano-wiki/metrics.json")
    perplexity, accuracy = included["test_perplexity"], 100 * included["test_accuracy"]
    assert f"| 235M | bfloat16 | **{perplexity:.2f}** | {accuracy:.1f} % |" in text
    assert f"perplexity {perplexity:.1f}." in readme
    recipe = read_json(ROOT / "saved_models/amlp_nano-wiki/recipe.json")
    assert round(recipe["epochs"] * recipe["epoch_tokens"] / 1e6) == 235
