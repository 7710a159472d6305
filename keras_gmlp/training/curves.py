"""Learning curves of a run."""

from keras_gmlp.utils import plotting


def draw_curves(history, path, curves, splits):
    """Draws two metrics over epochs, for the training and another split, as a PNG file."""
    from matplotlib.ticker import MaxNLocator

    epochs = [int(row["epoch"]) + 1 for row in history]
    figure, (both,) = plotting.figure((10, 4), columns=2)
    figure.suptitle(path.parent.name)
    for axes, (name, axis_label, scale) in zip(both, curves, strict=True):
        for key, label in zip((name, f"val_{name}"), splits, strict=True):
            values = [scale * float(row[key]) for row in history]
            axes.plot(epochs, values, label=label, marker="." if len(epochs) < 40 else None)
        at = {"xytext": (0, 6), "textcoords": "offset points", "ha": "right"}
        axes.annotate(f"{values[-1]:.2f}", (epochs[-1], values[-1]), **at)
        axes.margins(y=0.08)  # room for the number
        axes.set(xlabel="epoch", ylabel=axis_label)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(alpha=0.3)
        axes.legend()
    plotting.save(figure, path)
