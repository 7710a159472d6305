"""Bar charts of a benchmark."""

from keras_gmlp.benchmark.candidates import REFERENCES, TITLES, threads_text
from keras_gmlp.utils import plotting

COLOURS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#9467bd")  # one per number of threads


def draw_bars(rows, path):
    """Draws milliseconds per image: one row of axes per model, one column per batch size."""
    rows = [r for r in rows if r["status"] == "measured" and r["candidate"] not in REFERENCES]
    models = list(dict.fromkeys(row["model"] for row in rows))
    batches = sorted({row["batch"] for row in rows})
    threads = sorted({row["threads"] for row in rows})
    bars = max(len({r["candidate"] for r in rows if r["model"] == model}) for model in models)
    height = len(models) * (1.2 + bars * (0.12 + 0.18 * len(threads)))
    size = (1.5 + 5 * len(batches), height)
    figure, grid = plotting.figure(size, len(models), len(batches))
    for model, line in zip(models, grid, strict=True):
        for batch, axes in zip(batches, line, strict=True):
            chosen = [row for row in rows if (row["model"], row["batch"]) == (model, batch)]
            _bars(axes, chosen, threads)
            axes.set(title=f"{model}, batch {batch}", xlabel="milliseconds an image")
    figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside upper right", fontsize=8)
    plotting.save(figure, path)


def _bars(axes, rows, threads):
    """Draws a bar per candidate and number of threads, fastest on top, and a line for quartiles."""
    best = {}
    for row in rows:
        name = row["candidate"]
        best[name] = min(row["milliseconds"], best.get(name, row["milliseconds"]))
    places = {name: place for place, name in enumerate(sorted(best, key=best.get))}
    thickness = 0.8 / len(threads)
    for number, colour in zip(threads, COLOURS * len(threads), strict=False):
        chosen = [row for row in rows if row["threads"] == number]
        shift = (threads.index(number) - (len(threads) - 1) / 2) * thickness
        heights = [places[row["candidate"]] + shift for row in chosen]
        low, middle, high = (
            [row[key] / row["batch"] for row in chosen]
            for key in ("first_quartile", "milliseconds", "third_quartile")
        )
        axes.barh(heights, middle, thickness, color=colour, label=threads_text(number))
        axes.hlines(heights, low, high, color="0.2", linewidth=1)
        for height, end, value in zip(heights, map(max, middle, high), middle, strict=True):
            axes.annotate(
                f"{value:.3g}",
                (end, height),
                (3, 0),
                textcoords="offset points",
                va="center",
                fontsize=7,
            )
    axes.set_yticks(range(len(places)), [TITLES.get(name, name) for name in places], fontsize=8)
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.grid(axis="x", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
