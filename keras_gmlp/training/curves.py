"""Learning curves of a run."""

from keras_gmlp.tasks.task import CURVES
from keras_gmlp.utils import plotting


def draw_curves(history, path, title="", averaged=True, curves=CURVES, split="test", train="train"):
    """Draws two metrics over epochs, for training and another split, as a PNG file."""
    from matplotlib.ticker import MaxNLocator

    test = f"{split} (averaged weights)" if averaged else split
    epochs = [int(row["epoch"]) + 1 for row in history]
    figure, (both,) = plotting.figure((10, 4), columns=2)
    figure.suptitle(title)
    for axes, (name, axis_label, scale) in zip(both, curves, strict=True):
        for key, label in ((name, train), (f"val_{name}", test)):
            values = [scale * float(row[key]) for row in history]
            axes.plot(epochs, values, label=label, marker="." if len(epochs) < 40 else None)
        if epochs:
            last = values[-1]
            at = {"xytext": (0, 6), "textcoords": "offset points", "ha": "right"}
            axes.annotate(f"{last:.2f}", (epochs[-1], last), **at)
            axes.margins(y=0.08)  # room for the number
        axes.set_xlabel("epoch")
        axes.set_ylabel(axis_label)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(alpha=0.3)
        axes.legend()
    plotting.save(figure, path)
