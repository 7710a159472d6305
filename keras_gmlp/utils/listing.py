"""Lists the files in folders of data, and names what is left out."""

import errno
import os
from pathlib import Path

from keras_gmlp.utils.errors import first_of, printable, warn
from keras_gmlp.utils.inputs import FILES, is_hidden, is_junk

HIDDEN = "hidden by a leading dot"
CIRCLE, LINK = "behind links that lead back up", "behind links to folders"
ADVICE = {
    HIDDEN: " Rename them to use them.",
    CIRCLE: " Remove these links.",
    LINK: " Copy these folders to use them.",
}


def list_visible_files(root, aside=None):
    """Lists the files in a folder and below; `aside` gets hidden files and links to folders."""

    def refuse(error):  # `os.walk` skips folders that it cannot read
        if isinstance(error, PermissionError):
            place = printable(error.filename)
            raise ValueError(f"{place}: no permission to read this folder.") from None
        raise error

    paths = []
    for folder, folders, files in os.walk(root, onerror=refuse):
        if not os.access(folder, os.X_OK):  # listed, but its files cannot be opened
            refuse(PermissionError(errno.EACCES, "", folder))
        if aside is not None:
            aside += _list_aside(folder, folders, files)
        folders[:] = [name for name in folders if not is_junk(name)]
        paths += [Path(folder, name) for name in files if not is_junk(name)]
    return sorted(paths)


def _list_aside(folder, folders, files):
    """Lists hidden files in a folder, also in hidden folders, and links to folders."""
    paths = [Path(folder, name) for name in files if is_hidden(name)]
    for path in (Path(folder, name) for name in folders):
        if path.is_symlink():
            paths += [] if is_junk(path.name) else [path]
        elif is_hidden(path.name):
            for place, inner, names in os.walk(path):
                inner[:] = [name for name in inner if is_hidden(name) or not is_junk(name)]
                paths += [Path(place, n) for n in names if is_hidden(n) or not is_junk(n)]
    return sorted(paths)


def list_visible_folders(root):
    """Lists the visible folders in a folder as sorted paths; of links those that lead elsewhere."""
    try:
        entries = sorted(Path(root).iterdir())
    except PermissionError:
        raise ValueError(f"{printable(root)}: no permission to read this folder.") from None
    for path in entries:
        lost = path.is_symlink() and not os.path.exists(path) and not is_junk(path.name)
        if lost and not path.name.lower().endswith(FILES):  # a class, or all test images
            raise ValueError(f"{printable(path)}: a link to nothing. Mend or remove it.")
    paths = [path for path in entries if path.is_dir()]
    return sorted(path for path in paths if not is_junk(path.name) and not leads_up(path))


def list_beside(root):
    """Lists hidden files, also in hidden folders, and links that lead up, of one folder."""
    paths = _list_aside(*next(os.walk(root), (root, [], [])))
    return [path for path in paths if not os.path.isdir(path) or leads_up(path)]


def leads_up(path):
    """Returns whether a path is a link to the folder that holds it, or to a parent of that."""
    if not path.is_symlink():
        return False
    place, target = (Path(os.path.realpath(p)) for p in (path.parent, path))
    return target in (place, *place.parents)


def why_aside(path):
    """Returns why `list_visible_files` sets a path aside."""
    if not os.path.isdir(path):
        return HIDDEN
    return CIRCLE if leads_up(path) else LINK


def warn_left_out(place, kind, paths, find_reason=why_aside, advice=ADVICE):
    """Warns, for each reason, of what is left out of a folder: its number and the first names."""
    groups = {}
    for path in paths:
        if reason := find_reason(path):
            groups.setdefault(reason, []).append(path)
    for reason, found in groups.items():
        names = first_of([printable(os.path.relpath(path, place)) for path in found], 3)
        text = f"{printable(place)}: {kind} left out, {reason}: {len(found):,} ({names})."
        warn(text + advice.get(reason, ""))
