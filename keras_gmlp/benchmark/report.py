"""The results of a benchmark: rows for CSV, tables in Markdown, bar charts."""

import datetime
import os
import platform
import statistics

import numpy as np

from keras_gmlp.benchmark.machine_load import BUSY, read_memory
from keras_gmlp.benchmark.runtimes import PRODUCT, RUNTIMES, threads_text
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

VERDICTS = {
    "yes": "the machine was not quiet, so the figures are not reliable",
    "no": "the machine was quiet",
    "unknown": "whether the machine was busy is unknown",
}

COLOURS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#9467bd")  # one per number of threads


QUARTILES = 0.25, 0.5, 0.75


def to_rows(model, results, others):
    """Returns the rows of one model."""
    of_keras = (r.logits for r in results if r.candidate.runtime.reads == "keras" and r.logits)
    expected = next(of_keras, None)
    rows = [row for result in results for row in _rows(model, result, expected)]
    scatter = _product_spread(results)
    shared = {"others_share": others, "product_spread": scatter, "busy": busy(others, scatter)}
    limits, fastest = {}, {}
    measured = [row for row in rows if row["status"] == "measured"]
    for row in measured:
        threads, key = row["threads"], (row["threads"], row["batch"])
        fastest[key] = min(row["milliseconds"], fastest.get(key, row["milliseconds"]))
        if row["batch"] is None:
            limits[threads] = max(row["gflops"], limits.get(threads, 0))
    for row in measured:
        row["ratio"] = row["milliseconds"] / fastest[row["threads"], row["batch"]]
        if row["gflops"] and row["threads"] in limits:
            row["share_of_limit"] = row["gflops"] / limits[row["threads"]]
    return [{name: _plain({**row, **shared}.get(name)) for name in COLUMNS} for row in rows]


def busy(others, scatter):
    """Returns whether the machine was busy: `"yes"`, `"no"` or `"unknown"`."""
    if (others or 0) > BUSY or (scatter or 0) > BUSY:
        return "yes"
    return "unknown" if None in (others, scatter) else "no"


def _product_spread(results):
    """Returns the quartiles' distance of the steadiest product as a share, or `None`."""
    steadiest = {}
    for result in results:
        if result.candidate.runtime.is_product and not result.error:
            for size in result.bursts:
                first, median, third = np.quantile(result.seconds(size), QUARTILES)
                steadiest.setdefault(result.candidate.threads, []).append((third - first) / median)
    return max(map(min, steadiest.values()), default=None)


def _rows(model, result, expected):
    """Yields a row for each size of a candidate, without what compares it with others."""
    candidate, runtime = result.candidate, result.candidate.runtime
    row = {"model": model.name, "candidate": candidate.name, "threads": candidate.threads}
    row["cold_start_seconds"] = result.cold_start
    if expected and result.logits and runtime.reads != "timm":  # whose weights are others
        row["logit_difference"] = float(np.abs(np.subtract(result.logits, expected)).max())
    if result.error:
        yield {**row, "status": f"failed: {result.error}"}
        return
    for size, bursts in result.bursts.items():
        first, median, third = np.quantile(result.seconds(size), QUARTILES)
        batch = None if runtime.is_product else size
        operations = model.flops and size * model.flops if runtime.is_float32 else None
        operations = 2 * size**3 if runtime.is_product else operations
        yield {
            **row,
            "status": "measured",
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
    if isinstance(value, float):
        return float(f"{value:.4g}")
    return "" if value is None else value


def to_markdown(models, rows, command):
    """Returns the report in Markdown, with tables aligned for reading as plain text."""
    versions, memory = environment.installed_versions(PACKAGES), read_memory("MemTotal")
    known = f", {memory / 1e9:.0f} GB of memory" if memory else ""
    packages = ", ".join(f"{name} {number}" for name, number in versions.items())
    lines = [
        f"{environment.processor()}, {os.cpu_count()} cores{known}; "
        f"{datetime.date.today().isoformat()}.",
        f"Python {platform.python_version()}, {packages}.",
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
    return ": ".join(filter(None, [VERDICTS[row["busy"]], ", and ".join(parts)]))


def _section(model, rows):
    size = "x".join(map(str, model.shape))
    work = "" if model.flops is None else f", {model.flops / 1e6:,.0f} MFLOPs per image"
    lines = [f"## {model.name}", "", f"Images of {size}, {model.parameters:,} parameters{work}."]
    if rows:
        load = describe_load(rows[0])
        lines.append(f"{load[0].upper()}{load[1:]}.")
    tables, failed = {}, {}
    for row in rows:
        if row["status"] == "measured":
            tables.setdefault(row["threads"], []).append(row)
        else:
            failed.setdefault((row["candidate"], row["status"]), []).append(str(row["threads"]))
    for threads, of_threads in tables.items():
        lines += ["", *_table(threads, of_threads)]
    if failed:
        lines += ["", "Not measured:", ""]
    for (name, status), threads in failed.items():
        lines.append(f"- `{name}`, threads {' and '.join(threads)}: {status}")
    return lines


def _table(threads, rows):
    """Returns the table for one number of threads, fastest candidate first, aligned."""
    text, products = f"**{threads_text(threads)}**", [row for row in rows if row["batch"] == ""]
    if products:
        best = min(products, key=lambda row: row["milliseconds"])
        title = RUNTIMES[best["candidate"]].title
        text += f"; limit {best['gflops']:.0f} GFLOP/s ({title}, {PRODUCT} rows)"
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
    lines = [head, *(_cells(name, by_batch) for name, by_batch in ordered)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])])
    table = [text, ""]
    for name, *others in lines:
        cells = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        table.append(f"| {' | '.join([name.ljust(widths[0]), *cells])} |")
    return table


def _cells(name, by_batch):
    cells = [RUNTIMES[name].title]
    for batch, row in sorted(by_batch.items()):
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
    memory = [row["peak_megabytes"] for _, row in sorted(by_batch.items())]
    return [*cells, *("" if peak == "" else f"{peak:.0f}" for peak in memory)]


def _number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def draw_bars(rows, path):
    """Draws milliseconds per image: one row of axes per model, one column per batch size."""
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
    names = list(dict.fromkeys(row["candidate"] for row in ordered))
    thickness = 0.8 / len(threads)
    for number, colour in zip(threads, COLOURS * len(threads), strict=False):
        chosen = [row for row in rows if row["threads"] == number]
        shift = (threads.index(number) - (len(threads) - 1) / 2) * thickness
        heights = [names.index(row["candidate"]) + shift for row in chosen]
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
    axes.set_yticks(range(len(names)), [RUNTIMES[name].title for name in names], fontsize=8)
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.grid(axis="x", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
