"""Prepared sets by name, and errors about names that neither a file nor a data set has."""

import os
from pathlib import Path

from keras_gmlp.data.tfds.prepared import open_prepared, prepared_names, tfds_folder
from keras_gmlp.utils.errors import did_you_mean
from keras_gmlp.utils.files import why_missing


def missing_file(name):
    """Returns the error for a path that does not exist, with the nearest name."""
    path = Path(os.path.expanduser(name))
    others = path.parent.iterdir() if path.parent.is_dir() else ()
    near = [other.name for other in others if other != path]
    return f"{name}: {why_missing(path)}.{did_you_mean(path.name, near, str)}"


def open_named(name, suffixes, kind, is_of_kind, data_dir, short_names):
    """Returns the prepared set of a name; an error for another one hints at one of the kind."""
    prepared = open_prepared(name, data_dir) or open_prepared(short_names.get(name, ""), data_dir)
    if prepared is not None:
        return prepared
    if name.lower().endswith(suffixes) or name.startswith((".", "/", "~")):
        raise ValueError(missing_file(name))
    opened = {n: open_prepared(n, data_dir) for n in prepared_names(data_dir)}
    known = [n for n, prepared in opened.items() if prepared and is_of_kind(prepared)]
    if name in short_names or name in short_names.values():
        hint = f" tensorflow_datasets.load({short_names.get(name, name)!r}) prepares it."
    else:
        short = [short for short, full in short_names.items() if full in known]
        hint = did_you_mean(name, [*known, *short])
    raise ValueError(
        f"{name!r} is neither a {kind} that TensorFlow Datasets prepared in "
        f"{tfds_folder(data_dir)}.{hint}"
    )
