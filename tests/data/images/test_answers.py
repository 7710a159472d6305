import json

import numpy as np
import pytest

from keras_gmlp.data.batches.augmentation import Augmentation
from keras_gmlp.data.batches.host import training_batches
from keras_gmlp.data.batches.share import Position
from keras_gmlp.data.images.answers import load_answers, measure_answers, store_answers
from keras_gmlp.data.images.image_data import ImageData
from keras_gmlp.data.images.splits import ArraySplit
from keras_gmlp.data.images.views import Views, cut_views

VIEWS = Views(count=3, seed=1)


def make_data(samples=10, labels=("a", "b"), seed=0):
    images = np.random.default_rng(seed).integers(0, 256, (samples, 4, 4, 3)).astype("uint8")
    split = ArraySplit(images, np.arange(samples) % 2)
    return ImageData("shades", labels, (4, 4, 3), split, split)


class MeanTeacher:
    """Answers with means of the view, so that a test can compute them again."""

    image_shape = (6, 6, 3)
    sizes = {"logits": 2, "features": 3}  # noqa: RUF012
    seen = 0

    def answer(self, images):
        self.seen += len(images)
        means = images.mean(axis=(1, 2))
        return {"logits": means[:, :2], "features": means}


def test_answers_are_those_to_the_drawn_views(tmp_path):
    data, teacher = make_data(), MeanTeacher()
    answers = store_answers(teacher, data, tmp_path, VIEWS, batch_size=4)
    images, _ = data.train.arrays()
    for view in range(3):
        expected = cut_views(images, VIEWS.draw(view, 10), (6, 6)).mean(axis=(1, 2))
        np.testing.assert_allclose(answers.files("features")[view], expected, rtol=1e-3)
        np.testing.assert_allclose(answers.files("logits")[view], expected[:, :2], rtol=1e-3)
    written = sum(f.stat().st_size for f in tmp_path.glob("*-*.npy"))
    assert written == measure_answers(10, 3, teacher.sizes) + 6 * 128  # NumPy's headers
    assert answers.views == VIEWS


def test_stopped_answers_resume_and_are_refused_before(tmp_path):
    class StoppedTeacher(MeanTeacher):
        def answer(self, images):
            if self.seen >= 16:
                raise KeyboardInterrupt
            return super().answer(images)

    with pytest.raises(KeyboardInterrupt):
        store_answers(StoppedTeacher(), make_data(), tmp_path, VIEWS, batch_size=4)
    with pytest.raises(ValueError, match=r"holds 1 of 3 views; finish it"):
        load_answers(tmp_path)
    teacher = MeanTeacher()
    store_answers(teacher, make_data(), tmp_path, VIEWS, batch_size=4)
    assert teacher.seen == 20  # the second and the third view
    whole = store_answers(MeanTeacher(), make_data(), tmp_path.with_name("whole"), VIEWS)
    for ours, theirs in zip(
        load_answers(tmp_path).files("logits"), whole.files("logits"), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3)
    assert not list(tmp_path.glob(".*.npy"))


def test_other_settings_and_other_data_are_refused(tmp_path):
    answers = store_answers(MeanTeacher(), make_data(), tmp_path, VIEWS)
    with pytest.raises(ValueError, match="of other views; give another folder"):
        store_answers(MeanTeacher(), make_data(), tmp_path, Views(count=3, seed=2))
    answers.require_match(make_data())
    answers.require_match(make_data(6))  # a fraction: the first samples
    for other in (make_data(12), make_data(labels=("a", "c")), make_data(seed=1)):
        with pytest.raises(ValueError, match="answers for 10 other training images"):
            answers.require_match(other)
    with pytest.raises(ValueError, match="answers of other images"):
        store_answers(MeanTeacher(), make_data(seed=1), tmp_path, VIEWS)
    with pytest.raises(ValueError, match="The teacher has 2 classes; shades has 3"):
        store_answers(MeanTeacher(), make_data(labels=("a", "b", "c")), tmp_path, VIEWS)


def test_damaged_description(tmp_path):
    (tmp_path / "answers.json").write_text(json.dumps({"views": {}, "sizes": []}))
    with pytest.raises(ValueError, match=r"answers\.json: damaged"):
        load_answers(tmp_path)


def test_views_replace_crop_and_flip_and_nothing_mixes(tmp_path):
    answers = store_answers(MeanTeacher(), make_data(), tmp_path, VIEWS)
    left = answers.without_views(Augmentation(resized_crop=(0.1, 1), erasing=0.2))
    assert left == Augmentation(crop=0, flip=False, erasing=0.2)
    with pytest.raises(ValueError, match=r"single images; received mixup=0.2 and cutmix=0.0"):
        answers.without_views(Augmentation(mixup=0.2))


def test_each_epoch_shows_one_view_with_its_answers(tmp_path):
    data = make_data()
    answers = store_answers(MeanTeacher(), data, tmp_path, VIEWS)
    images, labels = data.train.arrays()
    batches = training_batches(data, 5, position=Position(2, epoch=1), answers=answers)
    for epoch in (1, 2, 3):
        windows = VIEWS.draw(epoch % 3, 10)
        expected = cut_views(images, windows, (4, 4))
        found = 0
        for views, targets in batches:
            for view, label, logits in zip(
                views.numpy(), targets["labels"].numpy(), targets["logits"].numpy(), strict=True
            ):
                (index,) = np.flatnonzero(np.abs(expected - view).max(axis=(1, 2, 3)) < 1e-2)
                assert label == labels[index]
                np.testing.assert_array_equal(
                    logits, answers.files("logits")[epoch % 3][index].astype("float32")
                )
                found += 1
        assert found == 10
