"""A benchmark's report in Markdown."""

import datetime
import os
import platform

from keras_gmlp.benchmark.candidates import PRODUCT, TITLES, threads_text
from keras_gmlp.benchmark.machine_load import total_memory
from keras_gmlp.utils import environment

PACKAGES = (
    *("keras-gmlp", "keras", "numpy", "tensorflow", "tensorflow-cpu", "jax", "torch"),
    *("ai-edge-litert", "onnxruntime", "openvino", "timm"),
)

EXPLANATION = """\
A call takes uint8 pixels and returns logits, both in NumPy. The figures are medians and
quartiles of all calls. The candidates ran in turns, in groups if memory was too small for all.
*Ratio* compares with the fastest candidate on the same number of threads. *Of limit* is the
share of the matrix product's floating-point operations per second; candidates that compute with
8-bit integers or bfloat16 have none. *Difference* is the largest one between the candidate's
logits and those of Keras for an image of noise; timm's weights are others. *Cores* is the average
number in use at the largest batch. *Cold start* is the time from the start of the process to the
first answer, measured once. *MB* is the peak memory up to that batch."""


def to_markdown(models, rows, command):
    """Returns the report in Markdown, with tables aligned for reading as plain text."""
    versions = environment.installed_versions(PACKAGES)
    memory = total_memory()
    lines = [
        f"{environment.processor()}, {os.cpu_count()} cores"
        + (f", {memory / 1e9:.0f} GB of memory" if memory else "")
        + f"; {datetime.date.today().isoformat()}.",
        f"Python {platform.python_version()}, "
        + ", ".join(f"{name} {number}" for name, number in versions.items())
        + ".",
        f"Measured with `{command}`.",
        "",
        EXPLANATION,
    ]
    for model in models:
        lines += ["", *_section(model, [row for row in rows if row["model"] == model.name])]
    return "\n".join(lines) + "\n"


def describe_load(row):
    """Describes what else the machine did, from any row of a model."""
    parts = []
    if row["others_share"] != "":
        parts.append(f"other processes took {100 * row['others_share']:.0f} % of its CPU time")
    if row["product_spread"] != "":
        percent = f"{100 * row['product_spread']:.0f} %"
        parts.append(f"the steadiest matrix product varied by {percent} between quartiles")
    verdict = {
        "yes": "the machine was not quiet, so the figures are not reliable",
        "no": "the machine was quiet",
        "unknown": "whether the machine was busy is unknown",
    }[row["busy"]]
    return ": ".join([verdict, *([", and ".join(parts)] if parts else [])])


def _section(model, rows):
    size = "x".join(map(str, model.shape))
    work = "" if model.flops is None else f", {model.flops / 1e6:,.0f} MFLOPs per image"
    lines = [f"## {model.name}", "", f"Images of {size}, {model.parameters:,} parameters{work}."]
    lines += [f"{_capitalized(describe_load(rows[0]))}." if rows else ""]
    measured = [row for row in rows if row["status"] == "measured"]
    for threads in dict.fromkeys(row["threads"] for row in measured):
        lines += ["", *_table(threads, [r for r in measured if r["threads"] == threads])]
    failed = {}
    for row in (row for row in rows if row["status"] != "measured"):
        failed.setdefault((row["candidate"], row["status"]), []).append(str(row["threads"]))
    if failed:
        lines += ["", "Not measured:", ""]
    for (name, status), threads in failed.items():
        lines.append(f"- `{name}`, threads {' and '.join(threads)}: {status}")
    return lines


def _capitalized(text):
    return text[:1].upper() + text[1:]


def _table(threads, rows):
    """The table for one number of threads, fastest candidate first."""
    products = [row for row in rows if row["batch"] == ""]
    best = min(products, key=lambda row: row["milliseconds"], default=None)
    text = f"**{threads_text(threads)}**"
    if best:
        text += (
            f"; limit {best['gflops']:.0f} GFLOP/s ({TITLES[best['candidate']]}, {PRODUCT} rows)"
        )
    by_name = {}
    for row in rows:
        if row["batch"] != "":
            by_name.setdefault(row["candidate"], {})[row["batch"]] = row
    if not by_name:
        return [text]
    batches = sorted({row["batch"] for row in rows if row["batch"] != ""})
    head = ["candidate"]
    for batch in batches:
        unit = "ms" if batch == 1 else "images/s"
        head += [f"{unit}, batch {batch}", "quartiles", "ratio", "of limit"]
    head += ["difference", "cores", "cold start", *(f"MB, batch {batch}" for batch in batches)]
    ordered = sorted(by_name.items(), key=lambda item: item[1][batches[0]]["milliseconds"])
    return [text, "", *_aligned([head, *(_cells(name, by_batch) for name, by_batch in ordered)])]


def _cells(name, by_batch):
    cells = [TITLES.get(name, name)]
    for batch in sorted(by_batch):
        row = by_batch[batch]
        low, middle, high = (
            row[key] for key in ("first_quartile", "milliseconds", "third_quartile")
        )
        if batch > 1:  # images/s: the slowest quartile is the lowest
            low, middle, high = (1000 * batch / value for value in (high, middle, low))
        share = row["share_of_limit"]
        cells += [
            _number(middle),
            f"{_number(low)} to {_number(high)}",
            f"{row['ratio']:.2f}",
            "" if share == "" else f"{100 * share:.0f} %",
        ]
    last = by_batch[max(by_batch)]
    difference = last["logit_difference"]
    cells += ["" if difference == "" else f"{difference:.2g}"]
    cells += [f"{last['cores_used']:.1f}", f"{last['cold_start_seconds']:.1f} s"]
    memory = [by_batch[batch]["peak_megabytes"] for batch in sorted(by_batch)]
    return [*cells, *("" if peak == "" else f"{peak:.0f}" for peak in memory)]


def _number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _aligned(lines):
    """Formats rows of cells as an aligned table; the first row is its head."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    first, *others = (
        [line[0].ljust(widths[0])] + [c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True)]
        for line in lines
    )
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return [f"| {' | '.join(cells)} |" for cells in (first, rule, *others)]
