"""Charts of a comparison: one colour per name, labels next to the points."""

import itertools

from keras_gmlp.utils import plotting

# All families together need more than matplotlib's ten.
FURTHER_COLOURS = ("black", "navy", "darkgreen", "maroon", "indigo", "darkslategrey")


def draw_series(panels, path, log=False, front=False):
    """Draws charts of series by name: `(xlabel, ylabel, {name: points})` for each.

    A point is `(x, mean, lowest, highest)`. `log` scales x by its logarithm; `front` adds the line
    of the points that no point further left matches.
    """
    from matplotlib import colormaps
    from matplotlib.ticker import LogLocator

    palette = [*colormaps["tab10"].colors, *FURTHER_COLOURS]
    width = 9 if len(panels) == 1 else 6 * len(panels)
    figure, (all_axes,) = plotting.figure((width, 5.5), columns=len(panels))
    for axes, (xlabel, ylabel, series) in zip(all_axes, panels, strict=True):
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        ends = []
        for (name, points), colour in zip(series.items(), itertools.cycle(palette), strict=False):
            xs, means, low, high = zip(*points, strict=True)
            axes.plot(xs, means, color=colour, marker=".")
            if len(points) > 1:
                axes.fill_between(xs, low, high, color=colour, alpha=0.15, linewidth=0)
            else:
                axes.vlines(xs, low, high, color=colour)
            ends.append((xs[-1], means[-1], f"{name} {means[-1]:.1f}", colour))
        if front:
            best = []
            for point in sorted(itertools.chain(*series.values()), key=lambda p: (p[0], -p[1])):
                if not best or point[1] > best[-1][1]:
                    best.append(point)
            if len(best) > 1:  # a line needs two points
                xs, means, *_ = zip(*best, strict=True)
                style = {"color": "0.6", "zorder": 0, "label": "nothing is better and cheaper"}
                axes.plot(xs, means, "--", **style)
                axes.legend(loc="best", frameon=False, fontsize=8)
        if log:
            axes.set_xscale("log")
            axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.xaxis.set_major_formatter("{x:g}")
            axes.minorticks_off()
        axes.set(xlabel=xlabel, ylabel=ylabel)
        axes.margins(x=0.25 if front else 0.02, y=0.1)
        _label(axes, ends)
    return plotting.save(figure, path)


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
