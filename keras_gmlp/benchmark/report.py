"""The results of a benchmark: rows for CSV, tables in Markdown, bar charts."""

import datetime
import os
import platform
import statistics

from keras_gmlp.benchmark.candidates import PRODUCT, REFERENCES, TITLES, threads_text
from keras_gmlp.benchmark.machine_load import BUSY, total_memory
from keras_gmlp.utils import environment, plotting

COLUMNS = (
    *("model", "candidate", "threads", "batch", "status"),
    *("milliseconds", "first_quartile", "third_quartile", "images_per_second", "ratio"),
    *("gflops", "share_of_limit", "logit_difference", "cores_used", "cold_start_seconds"),
    *("peak_megabytes", "calls", "others_share", "product_spread", "busy"),
)

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

COLOURS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#9467bd")  # one per number of threads


def quartiles(values):
    """Returns the quartiles of values, interpolated linearly; a single value is all three."""
    if len(values) == 1:
        return tuple(values * 3)
    return tuple(statistics.quantiles(values, n=4, method="inclusive"))


def to_rows(model, results, others):
    """Returns the rows of one model."""
    of_keras = (r.logits for r in results if r.candidate.name.startswith("keras-") and r.logits)
    expected = next(of_keras, None)
    rows = [row for result in results for row in _rows(model, result, expected)]
    scatter = _product_spread(results)
    limits, fastest = {}, {}
    for row in (row for row in rows if row["status"] == "measured"):
        threads, key = row["threads"], (row["threads"], row["batch"])
        fastest[key] = min(row["milliseconds"], fastest.get(key, row["milliseconds"]))
        if row["batch"] is None:
            limits[threads] = max(row["gflops"], limits.get(threads, 0))
    for row in rows:
        if row["status"] == "measured":
            row["ratio"] = row["milliseconds"] / fastest[row["threads"], row["batch"]]
        if row.get("gflops") and row["threads"] in limits:
            row["share_of_limit"] = row["gflops"] / limits[row["threads"]]
        row |= {"others_share": others, "product_spread": scatter, "busy": busy(others, scatter)}
    return [{name: _plain(row.get(name)) for name in COLUMNS} for row in rows]


def busy(others, scatter):
    """Returns whether the machine was busy: `"yes"`, `"no"` or `"unknown"`."""
    if (others or 0) > BUSY or (scatter or 0) > BUSY:
        return "yes"
    return "unknown" if None in (others, scatter) else "no"


def _product_spread(results):
    """Returns the quartiles' distance of the steadiest product as a share, or `None`."""
    steadiest = {}
    for result in results:
        if result.candidate.reference and not result.error:
            threads = result.candidate.threads
            for size in result.bursts:
                first, median, third = quartiles(result.seconds(size))
                relative = (third - first) / median
                steadiest[threads] = min(relative, steadiest.get(threads, relative))
    return max(steadiest.values(), default=None)


def _rows(model, result, expected):
    candidate = result.candidate
    row = {"model": model.name, "candidate": candidate.name, "threads": candidate.threads}
    row["cold_start_seconds"] = result.cold_start
    if expected is not None and result.logits is not None and candidate.comparable:
        pairs = zip(result.logits, expected, strict=True)
        row["logit_difference"] = max(abs(a - b) for a, b in pairs)
    if result.error:
        return [{**row, "status": f"failed: {result.error}"}]
    figures = ({"status": "measured", **_figures(model, result, n)} for n in result.bursts)
    return [{**row, **of} for of in figures]


def _figures(model, result, size):
    """The measured columns of one candidate at one size."""
    bursts, (first, median, third) = result.bursts[size], quartiles(result.seconds(size))
    if result.candidate.reference:
        batch, operations = None, 2 * size**3
    else:
        batch = size
        operations = size * model.flops if result.candidate.floating and model.flops else None
    return {
        "batch": batch,
        "milliseconds": 1000 * median,
        "first_quartile": 1000 * first,
        "third_quartile": 1000 * third,
        "images_per_second": batch and batch / median,
        "gflops": operations and operations / median / 1e9,
        "cores_used": statistics.median(burst["cores"] for burst in bursts),
        "peak_megabytes": result.peaks[size],
        "calls": sum(len(burst["seconds"]) for burst in bursts),
    }


def _plain(value):
    """Returns a value for the table; none of them is accurate beyond four digits."""
    if value is None:
        return ""
    return float(f"{value:.4g}") if isinstance(value, float) else value


def to_markdown(models, rows, command):
    """Returns the report in Markdown, with tables aligned for reading as plain text."""
    versions, memory = environment.installed_versions(PACKAGES), total_memory()
    lines = [
        f"{environment.processor()}, {os.cpu_count()} cores"
        + (f", {memory / 1e9:.0f} GB of memory" if memory else "")
        + f"; {datetime.date.today().isoformat()}.",
        f"Python {platform.python_version()}, "
        + ", ".join(f"{name} {number}" for name, number in versions.items())
        + ".",
        *(f"Measured with `{command}`.", "", EXPLANATION),
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
    if rows:
        load = describe_load(rows[0])
        lines.append(f"{load[0].upper()}{load[1:]}.")
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


def _table(threads, rows):
    """The table for one number of threads, fastest candidate first."""
    text, products = f"**{threads_text(threads)}**", [row for row in rows if row["batch"] == ""]
    if products:
        best = min(products, key=lambda row: row["milliseconds"])
        limit = f"{best['gflops']:.0f} GFLOP/s ({TITLES[best['candidate']]}, {PRODUCT} rows)"
        text += f"; limit {limit}"
    by_name = {}
    for row in (row for row in rows if row["batch"] != ""):
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
        low, middle, high = (row[k] for k in ("first_quartile", "milliseconds", "third_quartile"))
        if batch > 1:  # images/s: the slowest quartile is the lowest
            low, middle, high = (1000 * batch / value for value in (high, middle, low))
        share = row["share_of_limit"]
        cells += [_number(middle), f"{_number(low)} to {_number(high)}", f"{row['ratio']:.2f}"]
        cells.append("" if share == "" else f"{100 * share:.0f} %")
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


def draw_bars(rows, path):
    """Draws milliseconds per image: one row of axes per model, one column per batch size."""
    rows = [r for r in rows if r["status"] == "measured" and r["candidate"] not in REFERENCES]
    models = list(dict.fromkeys(row["model"] for row in rows))
    batches, threads = (sorted({row[name] for row in rows}) for name in ("batch", "threads"))
    bars = max(len({r["candidate"] for r in rows if r["model"] == model}) for model in models)
    height = len(models) * (1.2 + bars * (0.12 + 0.18 * len(threads)))
    figure, grid = plotting.figure((1.5 + 5 * len(batches), height), len(models), len(batches))
    for model, line in zip(models, grid, strict=True):
        for batch, axes in zip(batches, line, strict=True):
            _bars(axes, [r for r in rows if (r["model"], r["batch"]) == (model, batch)], threads)
            axes.set(title=f"{model}, batch {batch}", xlabel="milliseconds an image")
    figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside upper right", fontsize=8)
    plotting.save(figure, path)


def _bars(axes, rows, threads):
    """Draws a bar per candidate and number of threads, fastest on top, and a line for quartiles."""
    ordered = sorted(rows, key=lambda row: row["milliseconds"])
    places = {name: i for i, name in enumerate(dict.fromkeys(r["candidate"] for r in ordered))}
    thickness = 0.8 / len(threads)
    for number, colour in zip(threads, COLOURS * len(threads), strict=False):
        chosen = [row for row in rows if row["threads"] == number]
        shift = (threads.index(number) - (len(threads) - 1) / 2) * thickness
        heights = [places[row["candidate"]] + shift for row in chosen]
        low, middle, high = (
            [row[key] / row["batch"] for row in chosen]
            for key in ("first_quartile", "milliseconds", "third_quartile")
        )
        bars = axes.barh(heights, middle, thickness, color=colour, label=threads_text(number))
        axes.hlines(heights, low, high, color="0.2", linewidth=1)
        for bar, end in zip(bars, map(max, middle, high), strict=True):
            place = (end, bar.get_y() + thickness / 2)
            style = {"textcoords": "offset points", "va": "center", "fontsize": 7}
            axes.annotate(f"{bar.get_width():.3g}", place, (3, 0), **style)
    axes.set_yticks(range(len(places)), [TITLES.get(name, name) for name in places], fontsize=8)
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.grid(axis="x", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
