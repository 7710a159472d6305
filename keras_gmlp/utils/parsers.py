"""Opens files in native libraries, and refuses weights that are not plain arrays."""

import io
import zipfile
from pathlib import Path

WEIGHTS = "model.weights.h5"  # a member of a .keras file


def open_interpreter(path, threads):
    """Returns the LiteRT interpreter of a `.tflite` file with its tensors in place."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(path), num_threads=threads)
    interpreter.allocate_tensors()
    return interpreter


def check_weights(path):
    """Raises a `ValueError` unless a `.keras` or `.h5` file holds only plain arrays in HDF5."""
    # They lie in one piece and without a filter, as Keras writes them. HDF5 has more code, and more
    # faults, for the other layouts.
    import h5py

    content, size = path, Path(path).stat().st_size
    if Path(path).suffix == ".keras":
        with zipfile.ZipFile(path) as archive:
            content = archive.read(WEIGHTS)
        content, size = io.BytesIO(content), len(content)
    declared = 0
    with h5py.File(content, "r") as file:
        links = []  # first, because an error cannot leave the visit
        file.id.links.visit(lambda name, link: links.append((name, link.type)), info=True)
        for name, kind in links:
            reason = _why_not_plain(file, name, kind)
            if reason:
                raise ValueError(
                    f"its weights hold {name.decode(errors='replace')!r}, {reason}; expected plain "
                    "arrays, as Keras writes them"
                )
            declared += getattr(file[name], "nbytes", 0)
            if declared > size:  # before the memory for them is taken
                raise ValueError(f"its weights declare {declared:,} bytes and hold {size:,}")


def _why_not_plain(file, name, kind):
    """Returns what is at a name in an HDF5 file if it is not a group or a plain array."""
    import h5py

    if kind != h5py.h5l.TYPE_HARD:
        return "a link to another place"
    item = file[name]
    if isinstance(item, h5py.Group):
        return None
    if not isinstance(item, h5py.Dataset):
        return "a type"
    properties = item.id.get_create_plist()
    if properties.get_external_count():
        return "an array in another file"
    if properties.get_layout() != h5py.h5d.CONTIGUOUS or properties.get_nfilters():
        return "an array in chunks, compressed or of other parts"
    dtype = item.dtype  # kind V: bfloat16 and other small floats
    if dtype.kind not in "biufcV" or dtype.fields or dtype.subdtype or item.shape is None:
        return "an array of something else than numbers"
    # One that was never written has no bytes, and HDF5 makes them up.
    return "an array without its bytes" if item.id.get_storage_size() != item.nbytes else None
