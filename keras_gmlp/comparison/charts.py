"""Charts of a comparison: one colour per preset, labels next to the points."""

import statistics
from pathlib import Path

from keras_gmlp.comparison.images import summarize
from keras_gmlp.comparison.plan import group_by
from keras_gmlp.utils import plotting

COSTS = {
    "parameters": ("parameters (millions)", 1e-6),
    "flops": ("FLOPs an image (millions)", 1e-6),
    "latency_ms": ("latency of one image, 8-bit TFLite on one thread (ms)", 1),
}

CHARTS = ("epochs.png", "costs.png", "fractions.png")


def draw_comparison(runs, rows, directory):
    """Draws accuracy over epochs, over costs and over training images, as far as the runs allow."""
    directory = Path(directory)
    colours = choose_colours(list(dict.fromkeys(run.preset for run in runs)))
    summary = summarize(rows)
    whole = [line for line in summary if line["fraction"] == 1]
    paths = []
    if whole:
        full = group_by((run for run in runs if run.fraction == 1), lambda run: run.preset)
        paths.append(draw_epochs(full, colours, directory / "epochs.png"))
        paths.append(draw_costs(whole, colours, directory / "costs.png"))
    of_preset = [line["preset"] for line in summary]
    if any(of_preset.count(preset) > 1 for preset in of_preset):
        paths.append(draw_fractions(summary, colours, directory / "fractions.png"))
    for name in CHARTS:  # of earlier runs, which are no longer in the table
        if directory / name not in paths:
            (directory / name).unlink(missing_ok=True)
    return paths


def draw_epochs(named, colours, path):
    """Draws test accuracy over epochs: the mean over the runs, and a band from worst to best."""
    figure, (axes,) = make_figure()
    ends = []
    for name, colour in colours.items():
        histories = [h for run in named.get(name, ()) if (h := run.history())]
        if not histories:  # a run's folder may have lost its history.csv
            continue
        columns = [
            [100 * float(h[i]["val_accuracy"]) for h in histories]
            for i in range(min(map(len, histories)))
        ]
        epochs = range(1, len(columns) + 1)
        means = [statistics.mean(column) for column in columns]
        axes.plot(epochs, means, color=colour, marker=".")
        if len(histories) > 1:
            low, high = [min(c) for c in columns], [max(c) for c in columns]
            axes.fill_between(epochs, low, high, color=colour, alpha=0.15, linewidth=0)
        ends.append((len(columns), means[-1], name, colour))
    label_ends(axes, ends)
    several = any(len({run.seed for run in runs}) > 1 for runs in named.values())
    title = "band: worst to best" if several else ""
    axes.set(xlabel="epoch", ylabel="test accuracy (%)", title=title)
    return plotting.save(figure, path)


def draw_costs(summary, colours, path):
    """Draws test accuracy over parameters, FLOPs and latency, and the Pareto front."""
    known = [name for name in COSTS if all(name in line for line in summary)]
    figure, all_axes = make_figure(columns=len(known))
    for axes, name in zip(all_axes, known, strict=True):
        label, unit = COSTS[name]
        points = [(unit * s[name], 100 * s["test_accuracy"], s) for s in summary]
        for x, y, line in points:
            spread = 100 * (line["spread"] or 0)
            axes.errorbar(x, y, yerr=spread or None, fmt="o", color=colours[line["preset"]])
        front = pareto(points)
        xs, ys = [x for x, _, _ in front], [y for _, y, _ in front]
        axes.plot(xs, ys, "--", color="0.6", zorder=0, label="nothing is better and cheaper")
        if len(front) > 1:  # a line needs two points
            axes.legend(loc="best", frameon=False, fontsize=8)
        axes.set(xlabel=label, ylabel="test accuracy (%), ± standard deviation over seeds")
        axes.margins(x=0.25, y=0.1)
        names = [s["preset"].removesuffix("_n4_32").removesuffix("_32") for s in summary]
        places = zip(points, names, strict=True)
        _label(axes, [(x, y, name, colours[s["preset"]]) for (x, y, s), name in places])
    return plotting.save(figure, path)


def pareto(points):
    """Returns the `(cost, accuracy, ...)` points that no cheaper point matches, sorted by cost."""
    front = []
    for point in sorted(points, key=lambda p: (p[0], -p[1])):
        if not front or point[1] > front[-1][1]:
            front.append(point)
    return front


def draw_fractions(summary, colours, path):
    """Draws test accuracy over the share of training images, of presets with several shares."""
    from matplotlib.ticker import FixedLocator

    found = group_by(sorted(summary, key=lambda s: s["fraction"]), lambda s: s["preset"])
    names = ("fraction", "test_accuracy", "spread")
    series = {
        preset: [[100 * (line[name] or 0) for name in names] for line in found[preset]]
        for preset in colours
        if len(found.get(preset, ())) > 1
    }
    ticks = FixedLocator(sorted({100 * s["fraction"] for s in summary}))
    ylabel = "test accuracy (%), ± standard deviation over seeds"
    axes = {"xlabel": "training images (% of the set)", "ylabel": ylabel}
    return draw_series(series, colours, path, ticks, **axes)


def draw_series(series, colours, path, ticks, **labels):
    """Draws lists of x, mean and spread by name, as lines over a logarithmic axis."""
    figure, (axes,) = make_figure()
    ends = []
    for name, points in series.items():
        xs, means, spreads = zip(*points, strict=True)
        axes.errorbar(xs, means, yerr=spreads, color=colours[name], marker="o", capsize=2)
        ends.append((xs[-1], means[-1], name, colours[name]))
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(ticks)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.minorticks_off()
    label_ends(axes, ends)
    axes.set(**labels)
    return plotting.save(figure, path)


def make_figure(columns=1):
    """Returns a figure and its axes, a row of `columns` charts."""
    width = 9 if columns == 1 else 6 * columns
    figure, (all_axes,) = plotting.figure((width, 5.5), columns=columns)
    for axes in all_axes:
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    return figure, all_axes


def choose_colours(presets):
    """Returns a colour per preset; all families together need more than matplotlib's ten."""
    import matplotlib as mpl

    dark = ("black", "navy", "darkgreen", "maroon", "indigo", "darkslategrey")
    palette = [*mpl.colormaps["tab10"].colors, *dark]
    return {preset: palette[i % len(palette)] for i, preset in enumerate(presets)}


def label_ends(axes, ends):
    """Writes names and values at the ends of lines, `(x, y, text, colour)`."""
    axes.margins(x=0.02)
    _label(axes, [(x, y, f"{text} {y:.1f}", colour) for x, y, text, colour in ends])


def _label(axes, labels):
    """Writes texts to the right of their points, moved up or down where they would overlap."""
    axes.figure.draw_without_rendering()  # the layout determines the positions of the points
    labels = sorted(labels, key=lambda label: label[1])
    places = axes.transData.transform([label[:2] for label in labels]) * 72 / axes.figure.dpi
    heights = _separate(places, [5 * len(label[2]) for label in labels], 10)
    for (x, y, text, colour), (_, start), end in zip(labels, places, heights, strict=True):
        axes.annotate(
            text,
            (x, y),
            (16, end - start),
            textcoords="offset points",
            va="center",
            color=colour,
            fontsize=8,
            arrowprops={"arrowstyle": "-", "relpos": (0, 0.5), "color": colour, "linewidth": 0.5},
        )


def _separate(places, widths, height):
    """Returns heights close to those of the places, at which the texts do not overlap."""
    heights = [y for _, y in places]
    pairs = [
        (low, high)
        for high in range(len(places))
        for low in range(high)
        if places[low][0] < places[high][0] + widths[high]
        and places[high][0] < places[low][0] + widths[low]
    ]
    for _ in range(500):  # move pairs that are too close apart, until none is left
        for low, high in pairs:
            missing = height - (heights[high] - heights[low])
            if missing > 0.1:
                heights[low] -= missing / 2
                heights[high] += missing / 2
    return heights
