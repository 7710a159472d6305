"""What is wrong with a folder or a table of pictures: files, copies, classes, labels."""

import collections
import dataclasses
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from keras_gmlp.data.images.folder import list_splits
from keras_gmlp.data.images.read_image import read_image
from keras_gmlp.data.label_sets import refuse_several
from keras_gmlp.inspection.label_errors import (
    FOLDS,
    can_judge,
    find_label_errors,
    predict_out_of_fold,
    thumbnail_features,
)
from keras_gmlp.inspection.near_duplicates import find_equal_pixels, find_near_duplicates
from keras_gmlp.utils.errors import printable
from keras_gmlp.utils.progress import map_in_threads
from keras_gmlp.utils.tables import write_table

SIDE = 32  # of the thumbnails, in pixels
IMBALANCE = 10  # largest ratio of two classes' pictures

KINDS = ("unreadable", "exact duplicate", "near duplicate", "few pictures", "imbalance", "label")


@dataclasses.dataclass(frozen=True)
class Picture:
    """An image file in a folder of class folders, or in a table."""

    path: Path
    label: str
    split: str  # "train", or the name of the split that it is held out for


@dataclasses.dataclass(frozen=True)
class Finding:
    """One finding, a row of findings.csv."""

    path: Path  # of the file, or of the folder for a finding on classes
    label: str  # its class, "" for imbalance
    finding: str  # one of KINDS
    other: str = ""  # the other file of a pair, or the suggested class of a label
    # Difference of a near duplicate, probability of a label, number of pictures, ratio of classes.
    score: float | None = None
    note: str = ""  # why a file is unreadable, or what is wrong with a pair


@dataclasses.dataclass(frozen=True)
class Report:
    """The result of `check_folder`."""

    pictures: int
    classes: int
    findings: list[Finding]  # in the order of KINDS
    accuracy: float | None  # of classifiers out of fold; None without two classes of five pictures
    judged: bool  # whether these were good enough to doubt labels

    def summary(self):
        """Returns the numbers as a dict for JSON, with the number of findings of each kind."""
        counts = collections.Counter(found.finding for found in self.findings)
        notes = [found.note for found in self.findings]
        return {
            **vars(self),
            "findings": {kind: counts[kind] for kind in KINDS},
            "across_splits": sum("across splits" in note for note in notes),
            "different_classes": sum("different classes" in note for note in notes),
        }


def check_folder(
    root: str | Path, min_images: int = 10, embed: Callable[[list[Path]], np.ndarray] | None = None
) -> Report:
    """Looks for unreadable files, duplicates, small classes and labels that are likely wrong.

    Reads each picture once, to 32 x 32 pixels, and keeps no more of it. Changes nothing.

    Args:
        root: Path of a folder of class folders, or of a table, as `data.load` takes it.
        min_images: Smallest number of readable pictures of a class that is not reported.
        embed: Function from paths to features `(pictures, features)`, by which labels are judged;
            see `inference.embed`. Defaults to colours and edges of the thumbnails.

    Returns:
        A `Report`.

    Raises:
        ValueError: If training could not list the pictures: fewer than two classes, a class
            without pictures, a table that cannot be read.
        ImportError: If scikit-learn is not installed.
    """
    root = Path(root)
    labels, splits, label_sets = list_splits(root)
    refuse_several(root, label_sets)
    listed = [
        Picture(Path(os.fsdecode(file)), labels[index], split)
        for split, pairs in splits.items()
        for file, index in pairs
    ]
    thumbnails, reasons = _read_thumbnails(listed)
    findings = [
        Finding(listed[i].path, listed[i].label, "unreadable", note=reason)
        for i, reason in reasons.items()
    ]
    kept = [i for i in range(len(listed)) if i not in reasons]
    # Training pictures first: a pair then names the copy that is held out.
    kept.sort(key=lambda i: listed[i].split != "train")
    pictures, thumbnails = [listed[i] for i in kept], thumbnails[kept]
    findings += _find_copies(pictures, thumbnails)
    findings += _find_small_classes(root, pictures, labels, min_images)
    suspects, accuracy, judged = _find_suspects(pictures, thumbnails, embed)
    findings = sorted(findings + suspects, key=lambda found: KINDS.index(found.finding))
    return Report(len(listed), len(labels), findings, accuracy, judged)


def write_findings(findings, path):
    """Writes findings as a CSV file with a header, complete or not at all."""
    rows = [["path", "class", "finding", "other", "score", "note"]]
    for found in findings:
        score = "" if found.score is None else f"{found.score:.4g}"
        rows.append([found.path, found.label, found.finding, found.other, score, found.note])
    write_table(path, rows)


def _read_thumbnails(pictures):
    """Returns an array `(pictures, 32, 32, 3)`, and why files are unreadable, by index."""

    def read(picture):
        try:
            return read_image(picture.path, (SIDE, SIDE, 3))
        except (ValueError, MemoryError) as error:
            return str(error).removeprefix(f"{printable(picture.path)}: ")

    thumbnails = np.zeros((len(pictures), SIDE, SIDE, 3), "uint8")
    reasons = {}
    for i, found in enumerate(map_in_threads(read, pictures, "reading images")):
        if isinstance(found, str):
            reasons[i] = found
        else:
            thumbnails[i] = found
    return thumbnails, reasons


def _find_copies(pictures, thumbnails):
    """Returns the exact duplicates, each with the first of them, and the near duplicates."""
    equal = find_equal_pixels([picture.path for picture in pictures], thumbnails)
    pairs = [("exact duplicate", group[0], i, 0.0) for group in equal for i in group[1:]]
    copies = {i for _, _, i, _ in pairs}
    single = [i for i in range(len(pictures)) if i not in copies]
    near = find_near_duplicates(thumbnails[single])
    closest = sorted(near.items(), key=lambda item: item[1])
    pairs += [("near duplicate", single[a], single[b], score) for (a, b), score in closest]
    findings = []
    for kind, first, second, score in pairs:
        whole, copy = pictures[first], pictures[second]
        notes = ["across splits"] * (whole.split != copy.split)
        notes += ["different classes"] * (whole.label != copy.label)
        note = ", ".join(notes)
        findings.append(Finding(copy.path, copy.label, kind, str(whole.path), score, note))
    return findings


def _find_small_classes(root, pictures, labels, min_images):
    counts = collections.Counter(picture.label for picture in pictures)
    findings = [
        Finding(root, label, "few pictures", score=counts[label])
        for label in labels
        if counts[label] < min_images
    ]
    ranked = counts.most_common()
    if ranked and ranked[0][1] > IMBALANCE * ranked[-1][1]:
        (largest, most), (smallest, least) = ranked[0], ranked[-1]
        ratio, note = most / least, f"{largest} has {most:,} pictures, {smallest} has {least:,}"
        findings.append(Finding(root, "", "imbalance", score=ratio, note=note))
    return findings


def _find_suspects(pictures, thumbnails, embed):
    """Returns the findings on labels, the accuracy of the predictions, whether it is enough."""
    counts = collections.Counter(picture.label for picture in pictures)
    names = sorted(label for label, count in counts.items() if count >= FOLDS)
    if len(names) < 2:
        return [], None, False
    chosen = [i for i, picture in enumerate(pictures) if picture.label in names]
    labels = np.array([names.index(pictures[i].label) for i in chosen])
    if embed is None:
        features = thumbnail_features(thumbnails[chosen])
    else:
        features = embed([pictures[i].path for i in chosen])
    probabilities = predict_out_of_fold(features, labels)
    accuracy = float(np.mean(probabilities.argmax(axis=1) == labels))
    if not can_judge(probabilities, labels):
        return [], accuracy, False
    findings = []
    for row, suggested in find_label_errors(probabilities, labels).items():
        picture, score = pictures[chosen[row]], float(probabilities[row, labels[row]])
        findings.append(Finding(picture.path, picture.label, "label", names[suggested], score))
    return findings, accuracy, True
