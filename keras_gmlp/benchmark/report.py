"""Turns measurements into rows: quartiles, ratios, shares of the machine's limit."""

import csv
import dataclasses
import statistics

from keras_gmlp.benchmark.machine_load import BUSY
from keras_gmlp.utils.files import atomic_write

COLUMNS = (
    "model",
    "candidate",
    "threads",
    "batch",
    "status",
    "milliseconds",
    "first_quartile",
    "third_quartile",
    "images_per_second",
    "ratio",
    "gflops",
    "share_of_limit",
    "logit_difference",
    "cores_used",
    "cold_start_seconds",
    "peak_megabytes",
    "calls",
    "others_share",
    "product_spread",
    "busy",
)


@dataclasses.dataclass(frozen=True)
class Spread:
    """The quartiles of a sample."""

    first: float
    median: float
    third: float

    @property
    def relative(self):
        """The distance from the first to the third quartile, as a share of the median."""
        return (self.third - self.first) / self.median


def spread(values):
    """Returns the quartiles of values, interpolated linearly; a single value is all three."""
    if len(values) == 1:
        return Spread(*values * 3)
    return Spread(*statistics.quantiles(values, n=4, method="inclusive"))


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


def write_csv(rows, path):
    with atomic_write(path) as temporary, temporary.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)


def _product_spread(results):
    """Returns the relative spread of the matrix products, or `None` without them."""
    steadiest = {}
    for result in results:
        if result.candidate.reference and not result.error:
            threads = result.candidate.threads
            for size in result.bursts:
                relative = spread(result.seconds(size)).relative
                steadiest[threads] = min(relative, steadiest.get(threads, relative))
    return max(steadiest.values(), default=None)


def _rows(model, result, expected):
    candidate = result.candidate
    shared = {
        "model": model.name,
        "candidate": candidate.name,
        "threads": candidate.threads,
        "cold_start_seconds": result.cold_start,
        "logit_difference": _difference(result, expected),
    }
    if result.error:
        return [{**shared, "status": f"failed: {result.error}"}]
    return [
        {**shared, "status": "measured", **_figures(model, result, size)} for size in result.bursts
    ]


def _difference(result, expected):
    if expected is None or result.logits is None or not result.candidate.comparable:
        return None
    return max(abs(a - b) for a, b in zip(result.logits, expected, strict=True))


def _figures(model, result, size):
    """The measured columns of one candidate at one size."""
    bursts, times = result.bursts[size], spread(result.seconds(size))
    if result.candidate.reference:
        batch, operations = None, 2 * size**3
    else:
        batch = size
        operations = size * model.flops if result.candidate.floating and model.flops else None
    return {
        "batch": batch,
        "milliseconds": 1000 * times.median,
        "first_quartile": 1000 * times.first,
        "third_quartile": 1000 * times.third,
        "images_per_second": batch and batch / times.median,
        "gflops": operations and operations / times.median / 1e9,
        "cores_used": statistics.median(burst["cores"] for burst in bursts),
        "peak_megabytes": result.peaks[size],
        "calls": sum(len(burst["seconds"]) for burst in bursts),
    }


def _plain(value):
    """Returns a value for the table; none of them is accurate beyond four digits."""
    if value is None:
        return ""
    return float(f"{value:.4g}") if isinstance(value, float) else value
