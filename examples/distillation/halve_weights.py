#!/usr/bin/env python3
"""Stores the weights of a .keras file in float16, which halves the file.

usage: halve_weights.py model.keras
"""

import io
import sys
import zipfile

import h5py
import numpy as np

from keras_gmlp.utils.files import atomic_write

WEIGHTS = "model.weights.h5"


def halve_weights(path):
    """Rewrites a file; returns the largest relative change of a weight that float16 holds whole."""
    changes, target = [0.0], io.BytesIO()
    with zipfile.ZipFile(path) as archive:
        parts = {part: archive.read(part) for part in archive.infolist()}
    (weights,) = [part for part in parts if part.filename == WEIGHTS]
    with h5py.File(io.BytesIO(parts[weights])) as old, h5py.File(target, "w") as new:
        new.attrs.update(old.attrs)

        def convert(name, item):
            if isinstance(item, h5py.Group):
                new.require_group(name).attrs.update(item.attrs)
                return
            values = item[()]
            if np.issubdtype(values.dtype, np.floating):
                half = values.astype("float16")
                if not np.isfinite(half).all():
                    raise ValueError(f"{path}: {name} has a weight that float16 cannot hold.")
                normal = np.abs(values) >= np.finfo("float16").smallest_normal
                changes.append(np.abs(half[normal] / values[normal] - 1).max(initial=0.0))
                values = half
            new.create_dataset(name, data=values).attrs.update(item.attrs)

        old.visititems(convert)
    parts[weights] = target.getvalue()
    with atomic_write(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for part, content in parts.items():
            archive.writestr(part, content)
    return float(max(changes))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(
        f"weights above 6.1e-5 changed by at most {halve_weights(sys.argv[1]):.2g} of their value"
    )
