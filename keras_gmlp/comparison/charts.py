"""Charts of a comparison: one colour per name, labels next to the points."""

from keras_gmlp.utils import plotting

COSTS = {
    "parameters": ("parameters (millions)", 1e-6),
    "flops": ("FLOPs an image (millions)", 1e-6),
    "latency_ms": ("latency of one image, 8-bit TFLite on one thread (ms)", 1),
}


def draw_lines(series, path, xlabel, ylabel, log=False):
    """Draws lists of x, mean, lowest and highest value by name, as lines in bands."""
    figure, (axes,) = make_figure()
    ends = []
    for (name, points), colour in zip(series.items(), choose_colours(series), strict=True):
        xs, means, low, high = zip(*points, strict=True)
        axes.plot(xs, means, color=colour, marker=".")
        axes.fill_between(xs, low, high, color=colour, alpha=0.15, linewidth=0)
        ends.append((xs[-1], means[-1], name, colour))
    if log:
        from matplotlib.ticker import LogLocator

        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.minorticks_off()
    label_ends(axes, ends)
    axes.set(xlabel=xlabel, ylabel=ylabel)
    return plotting.save(figure, path)


def draw_points(panels, path, front=False):
    """Draws charts of named points: `(xlabel, ylabel, [(x, mean, spread, name)])` for each.

    `front` adds the line of the points that no point further left matches.
    """
    figure, all_axes = make_figure(columns=len(panels))
    for axes, (xlabel, ylabel, points) in zip(all_axes, panels, strict=True):
        labels, colours = [], choose_colours(points)
        for (x, y, spread, name), colour in zip(points, colours, strict=True):
            axes.errorbar(x, y, yerr=spread or None, fmt="o", color=colour)
            labels.append((x, y, name.removesuffix("_n4_32").removesuffix("_32"), colour))
        if front:
            best = pareto(points)
            xs, ys = [x for x, *_ in best], [y for _, y, *_ in best]
            axes.plot(xs, ys, "--", color="0.6", zorder=0, label="nothing is better and cheaper")
            if len(best) > 1:  # a line needs two points
                axes.legend(loc="best", frameon=False, fontsize=8)
        axes.set(xlabel=xlabel, ylabel=ylabel)
        axes.margins(x=0.25, y=0.1)
        _label(axes, labels)
    return plotting.save(figure, path)


def pareto(points):
    """Returns the `(cost, score, ...)` points that no cheaper point matches, sorted by cost."""
    front = []
    for point in sorted(points, key=lambda p: (p[0], -p[1])):
        if not front or point[1] > front[-1][1]:
            front.append(point)
    return front


def make_figure(columns=1):
    """Returns a figure and its axes, a row of `columns` charts."""
    width = 9 if columns == 1 else 6 * columns
    figure, (all_axes,) = plotting.figure((width, 5.5), columns=columns)
    for axes in all_axes:
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    return figure, all_axes


def choose_colours(names):
    """Returns a colour per name, a list; all families together need more than matplotlib's ten."""
    import matplotlib as mpl

    dark = ("black", "navy", "darkgreen", "maroon", "indigo", "darkslategrey")
    palette = [*mpl.colormaps["tab10"].colors, *dark]
    return [palette[i % len(palette)] for i in range(len(names))]


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
