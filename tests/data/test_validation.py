"""Validation images: who is held out, and that groups stay together."""

import os

import numpy as np
import pytest
from pictures import write_pictures
from refused import refused

from keras_gmlp import data
from keras_gmlp.data import ImageData, hold_out
from keras_gmlp.data.images.samples import from_pixels
from keras_gmlp.evaluation.labelled import LabelledImages


def names(split):
    return [os.path.basename(os.fsdecode(path)) for path in split.paths]


def patients(split):
    return {name.split("_")[0] for name in names(split)}


@pytest.fixture
def photos(tmp_path):
    """Three classes of 20, 10 and 10 pictures; four pictures of each patient."""
    sizes = {"a": 20, "b": 10, "c": 10}
    return write_pictures(
        tmp_path / "photos",
        [f"{c}/{c}{i // 4}_{i}.png" for c, size in sizes.items() for i in range(size)],
    )


def numbered(labels):
    """Images whose pixels are their number."""
    images = np.arange(len(labels), dtype="uint8")[:, None, None, None] * np.ones((1, 2, 2, 1))
    return from_pixels(images.astype("uint8"), labels)


def test_each_class_gives_its_share_and_every_image_stays_once():
    labels = np.array([0] * 50 + [1] * 20 + [2] * 3)
    whole = ImageData("numbers", ("a", "b", "c"), (2, 2, 1), numbered(labels), numbered([0]))
    held = hold_out(whole, 0.2)
    (train, kept), (validation, cut) = held.train.arrays(), held.validation.arrays()
    assert np.bincount(cut).tolist() == [10, 4, 1]
    assert sorted([*train[:, 0, 0, 0], *validation[:, 0, 0, 0]]) == list(range(73))
    np.testing.assert_array_equal(labels[train[:, 0, 0, 0]], kept)
    np.testing.assert_array_equal(labels[validation[:, 0, 0, 0]], cut)
    assert held.test is whole.test
    np.testing.assert_array_equal(hold_out(whole, 0.2).validation.arrays()[0], validation)
    assert not np.array_equal(hold_out(whole, 0.2, seed=1).validation.arrays()[0], validation)


def test_a_group_is_on_one_side(photos):
    groups = r"[abc]\d+_"
    whole = data.load(photos, (4, 4), groups=groups)
    held = hold_out(whole, 0.3, groups=groups)
    splits = [held.train, held.validation, held.test]
    assert sum(map(len, splits)) == 40
    sides = [patients(split) for split in splits]
    assert sorted(name for side in sides for name in side) == sorted(set().union(*sides))
    evaluated = LabelledImages(photos, "test", groups=groups)
    assert {os.path.basename(name) for name in evaluated.names} == set(names(held.test))
    for side in sides:
        assert {name[0] for name in side} == {"a", "b", "c"}


def test_the_group_is_what_the_parentheses_match(photos):
    # Pictures 0 to 9 and 10 to 19 of a class: the last but one digit, if there is one.
    held = data.load(photos, (4, 4), groups=r"([abc])\d+_(1?)\d\.png")
    tens = {name: len(name.split("_")[1]) == 6 for name in names(held.test)}
    assert len(set(tens.values())) == 1
    assert {name[0] for name in tens} == {"a"}  # b and c have one group each


@pytest.mark.parametrize("channels", [3, 1])
def test_the_files_of_the_other_split_are_not_read(photos, tmp_path, channels):
    held = hold_out(data.load(photos, (4, 4), channels=channels), 0.25)
    data.pack(held, tmp_path / "packed")
    packed = data.load(tmp_path / "packed")
    assert len(packed.validation) == len(held.validation) > 0
    assert packed.image_shape == (4, 4, channels)
    for path in held.train.paths:
        os.truncate(path, 0)
    np.testing.assert_array_equal(held.validation.arrays()[0], packed.validation.arrays()[0])


def test_mistakes(photos, tmp_path):
    files = [f"train/{c}/p{i}.png" for c in "ab" for i in range(3)]
    divided = write_pictures(tmp_path / "divided", [*files, "test/a/p2.png"])
    for name, groups, reason in (
        (photos, "nobody", "'nobody' finds nothing"),
        (divided, r"p\d", "such as 'p2', have training and test"),
    ):
        with refused(reason):
            data.load(name, (4, 4), groups=groups)
    for name in (photos, "digits"):
        with refused("validation images"):
            LabelledImages(name, "validation")
    opened, single = data.load(photos, (4, 4)), numbered([0, 1])
    for held, arguments, reason in (
        (hold_out(opened, 0.2), {}, "has validation images already"),
        *((opened, {"share": n}, "share") for n in (0, 1.5)),
        (opened, {"groups": r"[abc]\d+_"}, "have training and test images"),
        (ImageData("one", ("a", "b"), (2, 2, 1), single, single), {}, "too few images"),
    ):
        with refused(reason):
            hold_out(held, **arguments)
