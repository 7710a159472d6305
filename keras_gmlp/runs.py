"""What the folder of a training run holds."""

from pathlib import Path

CHECKPOINTS = "[0-9]*.weights.h5"  # not the hidden one that is being written

# Options of a run that its recipe.json tells and its model is built with; `None` for the model's.
PATCHES = ("patch_size", "patch_window")


def begun(directory):
    """Whether a run has left something to go on with: an epoch, or all of them."""
    directory = Path(directory)
    complete = (directory / "metrics.json").exists()
    return complete or any((directory / "checkpoint").glob(CHECKPOINTS))


def run_model(directory):
    """The path of the `.keras` file in the folder of a training run.

    Raises:
        ValueError: no such folder, or no model in it. One line.
    """
    if not str(directory):  # an unset variable of a shell
        raise ValueError("'': an empty path; expected the folder of a run of apps/train.py.")
    directory = Path(directory)
    path = directory / "model.keras"
    if path.exists():
        return path
    if not directory.exists():
        raise ValueError(
            f"{directory}: no such folder; expected that of a run of apps/train.py, such as "
            "saved_models/gmlp_n4_32-cifar10 is."
        )
    if not directory.is_dir():
        raise ValueError(f"{directory}: a file; expected the folder of a run of apps/train.py.")
    if (directory / "metrics.json").exists():
        raise ValueError(
            f"{directory}: the model.keras of this run is gone; train it anew with apps/train.py "
            "--restart."
        )
    if (directory / "recipe.json").exists():
        raise ValueError(f"{directory}: this run is not complete; finish it with apps/train.py.")
    raise ValueError(
        f"{directory}: no model.keras in this folder; expected the folder of a run of "
        "apps/train.py."
    )
