"""The pictures in a folder or a table with their labels and splits, for checks of the data."""

import dataclasses
import os
from pathlib import Path

from keras_gmlp.data.images.find_images import is_image_file
from keras_gmlp.data.images.folder import choose_split, class_names, find_splits, list_folders
from keras_gmlp.data.images.label_sets import refuse_several
from keras_gmlp.data.images.table import is_table, list_table
from keras_gmlp.utils.labels import clean_label, find_alike
from keras_gmlp.utils.listing import list_visible_files


@dataclasses.dataclass(frozen=True)
class Picture:
    """An image file in a folder of class folders, or in a table."""

    path: Path
    label: str
    split: str  # "train", or the name of the split that it is held out for


def list_pictures(root):
    """Lists the pictures in a folder or a table, however few they are; decodes none."""
    if is_table(root):
        labels, splits, label_sets = list_table(root)
        refuse_several(root, label_sets)
        return [
            Picture(Path(os.fsdecode(path)), labels[index], split or choose_split(i))
            for split, classes in splits.items()
            for files in classes
            for i, (path, index) in enumerate(files)
        ], labels
    splits = find_splits(root)
    labels = class_names(splits.get("train", root))
    pictures = []
    for split, folder in (splits or {"": root}).items():
        for name in list_folders(folder):
            for i, path in enumerate(filter(is_image_file, list_visible_files(folder / name))):
                pictures.append(Picture(path, clean_label(name), split or choose_split(i)))
    return pictures, tuple(sorted({*labels, *(picture.label for picture in pictures)}))


def list_empty_classes(root, pictures):
    """Returns the class folders without pictures, at which `load_folder` stops, a list of paths."""
    if is_table(root):
        return []
    used = {parent for picture in pictures for parent in picture.path.parents}
    return [folder for folder in _list_classes(root) if folder not in used]


def list_others(root, pictures):
    """Returns the files that are no pictures, and those that training sets aside, two sets."""
    if is_table(root):
        return set(), set()
    found, aside, used = set(), [], [*find_splits(root).values(), *_list_classes(root)]
    for folder in (root, *(folder for folder in used if folder.is_symlink())):
        found.update(list_visible_files(folder, aside))
    return found - {picture.path for picture in pictures}, set(aside) - set(used)


def _list_classes(root):
    splits = find_splits(root).values() or [root]
    return [split / label for split in splits for label in list_folders(split)]


def list_alike_classes(root, labels):
    """Returns the class folders, or the classes of a table, that look like another one, with it."""
    if is_table(root):
        return {Path(root, name): other for name, other in find_alike(labels).items()}
    return {
        split / name: other
        for split in find_splits(root).values() or [root]
        for name, other in find_alike(list_folders(split)).items()
    }
