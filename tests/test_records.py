"""The tables of README and the pages are what their CSV files in docs/records say."""

import csv
import itertools
import re
import statistics
from pathlib import Path

import pytest

from keras_gmlp.comparison.plan import read_plan

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
RECORDS = {path.name: path for path in (DOCS / "records").glob("*.csv")}
PLANS = sorted((DOCS / "plans").glob("*.json"))
LINK = r"\]\(\S*records/([\w-]+\.csv)\)"


def number(key, form):
    """Returns a column that shows the first value, or nothing."""
    return lambda rows: format(float(rows[0][key]), form) if rows[0][key] else ""


def show_mean(values, digits, error=True):
    """Returns the mean of values, with its standard error if there are several."""
    shown = f"{statistics.mean(values):.{digits}f}"
    if error and len(values) > 1:
        shown += f" ± {statistics.stdev(values) / len(values) ** 0.5:.{digits}f}"
    return shown


def share(key, digits, error=True):
    """Returns a column that shows the mean over seeds in percent, with its standard error."""

    def show(rows):
        values = [100 * float(row[key]) for row in rows if row[key]]
        return f"{show_mean(values, digits, error)} %" if values else ""

    return show


def perplexity(rows):
    return show_mean([float(row["perplexity"]) for row in rows], 1)


def of_seed(seed):
    """Returns a column that shows the perplexity of a seed."""
    return lambda rows: "".join(
        f"{float(row['perplexity']):.1f}" for row in rows if row["seed"] == seed
    )


def of_fraction(fraction):
    """Returns a column that shows the accuracy with a share of the training images."""
    return lambda rows: share("test_accuracy", 1)(
        [row for row in rows if float(row["fraction"]) == fraction]
    )


def of_draws(name, labels):
    """Returns a column that shows the mean accuracy on a set, and the deviation over the draws."""

    def show(rows):
        drawn = [row for row in rows if (row["set"], row["labels"]) == (name, str(labels))]
        values = [100 * float(row["accuracy"]) for row in drawn]
        return (
            f"{statistics.mean(values):.1f} ± {statistics.stdev(values):.1f} %"
            if len(values) > 1
            else ""
        )

    return show


def seconds_to_goal(rows):
    (row,) = rows
    if not row["epoch_seconds"]:
        return ""
    return f"{int(row['epochs to 88.5 %']) * float(row['epoch_seconds']):,.0f}"


# What a heading shows of the rows that share its line; other headings are columns of the file.
COLUMNS = {
    "test accuracy": share("test_accuracy", 2),
    "on training images": share("train_accuracy", 1, error=False),
    "seeds": lambda rows: str(len(rows)),
    "parameters": number("parameters", ",.0f"),
    "MFLOPs": lambda rows: f"{float(rows[0]['flops']) / 1e6:.0f}",
    "ms per image, 8-bit TFLite": number("latency_ms", ".2f"),
    "10 %": of_fraction(0.1),
    "25 %": of_fraction(0.25),
    "50 %": of_fraction(0.5),
    "100 %": of_fraction(1),
    "teacher": share("teacher_accuracy", 2),
    "seconds of an epoch": number("epoch_seconds", ".0f"),
    "seconds to 88.5 %": seconds_to_goal,
    "best accuracy": share("best_accuracy", 2),
    "at 32 pixels": share("accuracy_at_32", 2),
    "at 48, before": share("accuracy_before", 2),
    "at 48, after two epochs": share("test_accuracy", 2),
    "accuracy": share("accuracy", 2),
    "same class as Keras": share("same_class", 2),
    "largest logit difference": number("logit_difference", ".2g"),
    "MB": number("megabytes", ".2f"),
    "8-bit weights": share("8bit_accuracy", 2),
    "same class": share("8bit_same_class", 1),
    "MB, 8 bits": number("8bit_megabytes", ".2f"),
    "ms, 8 bits": number("8bit_ms", ".2f"),
    "full integer": share("integer_accuracy", 2),
    "same class, integer": share("integer_same_class", 1),
    "ms, integer": number("integer_ms", ".2f"),
    "seed 0": of_seed("0"),
    "seed 1": of_seed("1"),
    "mean perplexity": perplexity,
    "from": number("from_perplexity", ".1f"),
    "SST-2": share("sst2_accuracy", 1),
    "MRPC": share("mrpc_accuracy", 1),
    "first 60": share("negation_1", 1),
    "second 60": share("negation_2", 1),
    "third 60": share("negation_3", 1),
    "fourth 60": share("negation_4", 1),
    "validation texts": share("sst2_accuracy", 2),
    "calibration error": share("calibration_error", 2),
    "SST-2, 100": of_draws("SST-2", 100),
    "SST-2, 1,000": of_draws("SST-2", 1000),
    "questions, 100": of_draws("questions", 100),
    "questions, 1,000": of_draws("questions", 1000),
}


def split_cells(line):
    """Returns the cells of a line of a table, without bold type and code."""
    return [cell.strip(" *`") for cell in line.replace("`", "").strip().strip("|").split("|")]


def find_tables(page):
    """Yields the headings, the rows and the CSV file of each table with a link to one below it."""
    text = (ROOT / page).read_text("utf-8")
    for lines, below in re.findall(r"((?:^\|.*\n)+)\n((?:.+\n)+)", text, re.MULTILINE):
        if found := re.search(LINK, below):
            head, _, *rows = map(split_cells, lines.splitlines())
            yield head, rows, found[1]


PAGES = ["README.md", *(str(p.relative_to(ROOT)) for p in DOCS.glob("*/*.md"))]
TABLES = [(page, *table) for page in PAGES for table in find_tables(page)]


def read_records(name):
    lines = RECORDS[name].read_text("utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


@pytest.mark.parametrize(
    ("page", "head", "rows", "name"), TABLES, ids=[f"{page}-{name}" for page, *_, name in TABLES]
)
def test_a_table_is_what_its_file_says(page, head, rows, name):
    def label(row):
        return [row[column] for column in head if column not in COLUMNS]

    groups = [list(group) for _, group in itertools.groupby(read_records(name), label)]
    shown = [
        [COLUMNS[column](group) if column in COLUMNS else group[0][column] for column in head]
        for group in groups
    ]
    if page == "README.md":  # a part of the page's
        shown = [row for row in shown if row[0] in {row[0] for row in rows}]
    assert rows == shown


def test_every_file_is_shown_by_a_table_or_a_chart():
    charts = {
        name for name, path in RECORDS.items() if path.read_text("utf-8").startswith("# chart:")
    }
    assert set(RECORDS) == charts | {name for *_, name in TABLES}
    for name in RECORDS:
        text = RECORDS[name].read_text("utf-8")
        assert "# command: " in text
        for word in ("hardware", "versions", "seed"):
            assert word in text, name


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_a_plan_has_the_runs_of_the_records(path):
    name = {"language": "language-gates"}.get(path.stem, path.stem)
    runs = {Path(run.out).name for run in read_plan(path)}
    if path.stem != "record":
        assert {row["run"] for row in read_records(f"{name}.csv")} <= runs
    assert runs
