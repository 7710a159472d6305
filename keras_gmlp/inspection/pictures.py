"""The pictures in a folder or a table with their labels and splits, for checks of the data."""

import dataclasses
import os
from pathlib import Path

from keras_gmlp.data.images.find_images import is_image_file
from keras_gmlp.data.images.folder import choose_split, class_names, find_splits, list_folders
from keras_gmlp.data.images.label_sets import refuse_several
from keras_gmlp.data.images.table import is_table, list_table
from keras_gmlp.utils.inputs import list_visible_files
from keras_gmlp.utils.labels import clean_label, find_alike


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


def list_rest(root, pictures, labels):
    """Lists the other files, the empty class folders, and the classes that look alike."""
    if is_table(root):
        return set(), [], {Path(root, name): other for name, other in find_alike(labels).items()}
    splits = [*find_splits(root).values()]
    names = {split: list_folders(split) for split in splits or [root]}
    classes = [split / name for split in names for name in names[split]]
    alike = {s / name: other for s in names for name, other in find_alike(names[s]).items()}
    others = set()
    for folder in (root, *(folder for folder in (*splits, *classes) if folder.is_symlink())):
        others.update(list_visible_files(folder))
    others -= {picture.path for picture in pictures}
    used = {parent for picture in pictures for parent in picture.path.parents}
    return others, [folder for folder in classes if folder not in used], alike
