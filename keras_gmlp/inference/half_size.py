"""Halves a model's file: stores its weights in float16.

python -m keras_gmlp.inference.half_size saved_models/vit_conv_n4_32-cifar10
"""

import io
import sys
import zipfile
from pathlib import Path

import h5py
import numpy as np

from keras_gmlp.inference.card_update import copy_archive
from keras_gmlp.models.saved import damaged_error, model_path, require_plain_weights
from keras_gmlp.utils.errors import OneLineParser
from keras_gmlp.utils.files import atomic_write
from keras_gmlp.utils.parsers import WEIGHTS


def halve_weights(path):
    """Rewrites a `.keras` file with its weights in float16."""
    try:
        with zipfile.ZipFile(path) as archive:
            weights = archive.read(WEIGHTS)
    except (OSError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path}: not a .keras file ({error}).") from None
    except KeyError:
        raise ValueError(f"{path}: not a .keras file; it has no {WEIGHTS}.") from None
    try:
        require_plain_weights(path)
    except (ValueError, OSError) as error:
        raise damaged_error(path, error) from None
    content, change = _halve(weights, path)
    with atomic_write(path) as temporary:
        copy_archive(path, temporary, WEIGHTS, content)
    return change


def _halve(content, path):
    """Returns the content of an HDF5 file with float16 data, and the largest relative change."""
    changes, target = [0.0], io.BytesIO()

    def convert(name, item):
        if isinstance(item, h5py.Group):
            group = new.require_group(name)
            group.attrs.update(item.attrs)
            return
        values = item[()]
        if np.issubdtype(values.dtype, np.floating):
            with np.errstate(over="ignore"):  # checked in the next line
                half = values.astype("float16")
            if not np.isfinite(half).all():
                raise ValueError(f"{path}: {name} has a weight that float16 cannot hold.")
            normal = np.abs(values) >= np.finfo("float16").smallest_normal
            changes.append(np.abs(half[normal] / values[normal] - 1).max(initial=0.0))
            values = half
        new.create_dataset(name, data=values).attrs.update(item.attrs)

    with h5py.File(io.BytesIO(content)) as old, h5py.File(target, "w") as new:
        new.attrs.update(old.attrs)
        old.visititems(convert)
    return target.getvalue(), float(max(changes))


def main(arguments=None):
    """Runs the command; returns the exit code."""
    parser = OneLineParser(
        prog="python -m keras_gmlp.inference.half_size",
        description="Rewrites model.keras with its weights in float16, which halves the file.",
        epilog="exit codes: 0 done, 1 failure, 2 wrong usage",
    )
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="RUN",
        help="folder of a training run, or the name of an included model",
    )
    for run in parser.parse_args(arguments).runs:
        try:
            path = model_path(Path(run))
            before = path.stat().st_size
            change = halve_weights(path)
        except (ValueError, OSError) as error:
            print(f"half_size: {error}", file=sys.stderr)
            return 1
        sizes = f"{before / 1e6:.2f} MB -> {path.stat().st_size / 1e6:.2f} MB"
        print(
            f"{path}: {sizes}; weights above 6.1e-5 changed by at most {change:.2g} of their "
            "value, smaller ones by at most 3e-8"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
