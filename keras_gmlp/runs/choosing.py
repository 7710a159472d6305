"""Chooses how to fine-tune: a linear head, or training at one of two rates, for some epochs.

Images that no candidate trains on decide: the data's validation images or, without them, a share of
the training images. Test images never decide. If the head is right on all images that decide, no
training is tried, because it cannot show a gain. The run then continues from the best epoch of the
chosen candidate, for as many epochs again, on all training images, those held out included.
"""

import dataclasses
import math
import time
from pathlib import Path

import keras

from keras_gmlp.data.validation import find_held_out
from keras_gmlp.models.saved import load_model
from keras_gmlp.runs.choice import HEAD, Choice, choice_path, choose_best, read_choice
from keras_gmlp.runs.prepare import build
from keras_gmlp.tasks import linear_head
from keras_gmlp.tasks.image_classification import ImageClassification
from keras_gmlp.training import run_directory
from keras_gmlp.training.processes import process_count
from keras_gmlp.utils.environment import accelerators
from keras_gmlp.utils.files import directory_lock, write_json
from keras_gmlp.utils.shipped import DEFAULT_BACKBONE
from keras_gmlp.weights import transfer

SHARE = 0.2  # of the training images, held out
RATES = (1e-3, 3e-4)
PATIENCE = 3  # epochs of a candidate without a better one
MOST_IMAGES = 100_000  # of more, short candidates cost much and show little

# Settings that fix what would be chosen, or that the candidates do not cover.
FIXING = {"epochs", "freeze", "patience", "optimizer", "teacher"}

# Images that a run may train on, counted each time, for sets of up to so many images and for each
# image beyond. With the features that is two minutes of a core for 500 images and six for 1,200.
PASSES, IMAGES, FURTHER = 3_200, 500, 14
MOST_PASSES = 10.8  # for each image of large sets

# Processor time that a choice and its run may take: for as many images, and for each beyond.
SECONDS, FURTHER_SECONDS = 120.0, 240 / 700
BEFORE = 40.0  # seconds of this process that count, at most: it may be an old one
AFTER = 15.0  # seconds that testing and the export take


def plan(images):
    """Returns how long the candidates train on a number of images, and in which batches."""
    passes = min(PASSES + FURTHER * max(0, images - IMAGES), max(PASSES, MOST_PASSES * images))
    epochs = round(passes / ((len(RATES) * (1 - SHARE) + 1) * images))
    return {"epochs": min(8, max(2, epochs)), "batch_size": 16 if images < 300 else 32}


def choose(prepared, *, restart=False, report=lambda text: None, **options):
    """Chooses the settings of a fine-tuning that its own settings leave open.

    The recipe `"finetune"` leaves settings open if the weights do not know the classes. Given
    settings stay as they are; with `epochs`, `freeze`, `patience`, `optimizer` or `teacher` nothing
    is chosen. With `epochs` of 0 only the regularization of the head is. A choice that was stopped
    resumes; one that was made is read.

    Args:
        prepared: `PreparedRun`.
        restart: Whether to delete a run in the directory and choose again. Do not let the run
            restart after that.
        report: Function that receives lines of text.
        **options: As for `PreparedRun.train`, for the candidates, which share a time limit.

    Returns:
        A `PreparedRun` with a `choice`; the one received if nothing is chosen.

    Raises:
        ValueError: As `prepare` and `data.hold_out`, and if the folder `candidates` of the run
            holds other files.
    """
    directory = Path(prepared.settings.directory)
    if not is_open(prepared):
        return prepared
    made_for = {**prepared.settings.record(), **prepared.recipe.settings()}
    made_for.pop("precision")  # measured, so that it may differ without a change of settings
    vectors = None
    with directory_lock(directory, run_directory.LOCK_TIMEOUT):
        if restart:
            run_directory.clear(directory)
        choice = read_choice(directory, made_for)
        if choice is None:
            if run_directory.has_progress(directory):  # it began without a choice
                return prepared
            run_directory.refuse_other_files(directory)
            run_directory.check_candidates(directory)
            try:
                search = _Search(prepared, report, options)
            except ValueError as error:  # groups that are too large for a fifth
                report(f"nothing is chosen: {error}")
                return prepared
            choice, vectors = search.choose(), search.vectors
            found = {"settings": made_for, **dataclasses.asdict(choice)}
            write_json(choice_path(directory), found)
            for line in choice.lines():
                report(line)
    best = choice.best()
    changes = {**choice.changes, **prepared.settings.changes}
    changes |= {"fit_head": 0.0} if best["epochs"] else {}  # the candidate has fitted it
    settings = dataclasses.replace(prepared.settings, changes=changes)
    run = build(settings, settings.make_recipe(), prepared.source, prepared.data)
    if best["epochs"]:
        # Only the same choice leads to the same weights.
        run = dataclasses.replace(run, settings=prepared.settings)
        if not run_directory.has_progress(directory):
            folder = candidate_folder(directory, best["learning_rate"])
            transfer(load_model(folder / "model.keras", compile=False), run.model)
    return dataclasses.replace(run, choice=choice, vectors=vectors)


def candidate_folder(directory, rate):
    """Returns the folder of a candidate of a run."""
    return Path(directory, run_directory.CANDIDATES, f"rate-{rate:g}")


def take_time(options, began):
    """Returns options of training whose time limit began at a time, not when training begins."""
    if options.get("time_limit") is None:
        return options
    return {**options, "time_limit": began + options["time_limit"] - time.monotonic()}


def is_open(prepared):
    """Returns whether a run leaves settings to be chosen."""
    settings, names = prepared.settings, {layer.name for layer in prepared.model.layers}
    if not (
        settings.recipe == "finetune"
        and prepared.transfer is not None
        and not prepared.testable
        and (settings.leaves_head or not FIXING & set(settings.changes))
        and not (settings.leaves_head and "fit_head" in settings.changes)
        and settings.changes.get("fit_head", 1)  # 0 asks for a random head
        and type(prepared.recipe.task) is ImageClassification
        and "head" in names
        and "head_distillation" not in names
        and process_count() == 1
        and keras.distribution.distribution() is None
        and len(prepared.data.train) <= MOST_IMAGES
    ):
        return False
    labels = prepared.data.train.read_labels().tolist()
    return len(labels) > len(set(labels)) > 1


class Budget(keras.callbacks.Callback):
    """Ends a candidate while there is processor time for the run, and measures epochs."""

    def __init__(self, images, share):
        super().__init__()
        used, self.share, self.epoch = time.process_time(), share, None
        self.seconds = self.rest = 0.0  # of the last candidate, and what was not its epochs
        seconds = SECONDS + FURTHER_SECONDS * max(0, images - IMAGES)
        self.end = used - min(used, BEFORE) + seconds - AFTER

    def on_epoch_begin(self, epoch, logs=None):
        self.began = time.process_time()

    def on_epoch_end(self, epoch, logs=None):
        self.epoch = time.process_time() - self.began
        # The first epoch compiles. The run adds half as many epochs at least, on all images.
        if epoch and self.epochs_left(self.epoch) < (epoch + 3) // 2:
            self.model.stop_training = True

    def measure(self, seconds, epochs):
        """Notes the processor time of a whole candidate, of which epochs are a part."""
        self.seconds, self.rest = seconds, max(0.0, seconds - epochs * (self.epoch or seconds))

    def epochs_left(self, before=0.0):
        """Returns how many epochs the run has time for after some seconds; infinity if unknown."""
        if not self.epoch:
            return math.inf
        left = self.end - time.process_time() - before - self.rest
        return max(0, math.floor(left * self.share / self.epoch))


@dataclasses.dataclass(frozen=True)
class _Trial(ImageClassification):
    """Training of a candidate, which is tested only on the images that decide."""

    model_card = False

    def measure(self, model, data):
        found = self.evaluate(model, data, "validation")
        return {"test_accuracy": found["accuracy"], "test_loss": found["loss"]}


class _Search:
    """The candidates of one run."""

    def __init__(self, prepared, report, options):
        self.prepared, self.report, self.options = prepared, report, options
        self.began = time.monotonic()
        self.settings, data = prepared.settings, prepared.data
        self.held_out = data.validation is None
        self.plan = plan(len(data.train))
        whole = data.train.keep()
        self.whole = dataclasses.replace(data, train=whole)
        if self.held_out:
            self.kept, self.cut = find_held_out(data, SHARE, self.settings.data.groups)
            train, other = (whole.choose(places) for places in (self.kept, self.cut))
        else:
            train, other = whole, data.validation
        self.data = dataclasses.replace(data, train=train, validation=other, test=other)
        self.budget = None
        included = self.settings.model.weights == DEFAULT_BACKBONE and not self.settings.data.size
        if included and not accelerators():
            self.budget = Budget(len(whole), len(train) / len(whole))

    def choose(self):
        """Tries the candidates; returns the `Choice`."""
        strength, *rows = self._try_heads()
        given = self.settings.changes.get("learning_rate")
        rates = RATES if given is None else [given]
        rates = [] if self.settings.leaves_head else rates
        if rows[0]["accuracy"] < 1:  # otherwise these images cannot show a gain
            for rate in rates:
                # So that there is time for the run if no other candidate is better.
                needed = rows[-1].get("best_epoch", 0)
                if self.budget and self.budget.epochs_left(self.budget.seconds) < needed:
                    self.report(f"no time to try the rate {rate:g}")
                else:
                    rows.append(self._try_training(strength, rate))
        best = choose_best(rows)
        epochs = best.get("best_epoch", 0)
        if self.budget and (most := max(1, self.budget.epochs_left())) < epochs:
            self.report(f"there is time for {most} epochs in place of {epochs}")
            epochs = most
        chosen = {"epochs": epochs}
        if best["epochs"]:
            chosen |= {name: best[name] for name in ("learning_rate", "batch_size")}
            if not self.held_out:
                chosen["patience"] = chosen["epochs"]
        else:
            chosen["fit_head"] = strength
        return Choice(chosen, len(self.data.validation), self.held_out, rows)

    def _try_heads(self):
        """Returns the best strength of the regularization, and its candidate."""
        self.report("fitting a linear head to the features")
        began = time.perf_counter()
        model, task = self.prepared.model, self.prepared.recipe.task
        vectors, labels = self.vectors = linear_head.read_training_features(model, self.whole, task)
        if self.held_out:
            seen, truth = (vectors[:, self.kept], labels[self.kept])
            tested, expected = vectors[0, self.cut], labels[self.cut]
        else:
            seen, truth = vectors, labels
            views = linear_head.choose_views(len(labels), mirror=False)[:1]
            (tested,), expected = linear_head.read_features(model, self.data.validation, views)
        self.seen = seen, truth
        classes = len(self.data.labels)
        given = self.settings.changes.get("fit_head")
        strengths = [given] if given else linear_head.STRENGTHS
        weights = task.class_weights(truth, classes)
        heads = linear_head.fit_head(seen, truth, classes, strengths, weights)
        scores = [linear_head.score_head(*head, tested, expected) for head in heads]
        loss, accuracy, strength = min(
            (loss, -accuracy, strength)
            for (accuracy, loss), strength in zip(scores, strengths, strict=True)
        )
        seconds = round(time.perf_counter() - began, 1)
        row = {"name": HEAD, "epochs": 0, "accuracy": round(-accuracy, 6), "loss": round(loss, 6)}
        return strength, {**row, "fit_head": strength, "seconds": seconds}

    def _try_training(self, strength, rate):
        """Trains a candidate, or resumes; returns its row."""
        budget, began = self.budget, time.process_time()
        self.report(f"training at the rate {rate:g}")
        given = {**self.plan, **self.settings.changes, "learning_rate": rate}
        given |= {"fit_head": strength, "patience": PATIENCE}
        place = candidate_folder(self.settings.directory, rate)
        settings = dataclasses.replace(self.settings, changes=given, directory=str(place))
        recipe = settings.make_recipe()
        fields = {f.name: getattr(recipe.task, f.name) for f in dataclasses.fields(_Trial)}
        recipe = dataclasses.replace(recipe, task=_Trial(**fields))
        run = build(settings, recipe, self.prepared.source, self.data)
        run = dataclasses.replace(run, vectors=self.seen)
        options = {"callbacks": [budget] if budget else [], **self.options}
        metrics = run.train(**take_time(options, self.began))
        if budget:
            budget.measure(time.process_time() - began, metrics["epochs"])
        row = {"name": f"all layers, rate {rate:g}", "learning_rate": rate}
        row |= {"batch_size": recipe.batch_size, "fit_head": strength}
        row |= {name: metrics[name] for name in ("epochs", "best_epoch")}
        row |= {"accuracy": metrics["test_accuracy"], "loss": metrics["test_loss"]}
        return {**row, "seconds": metrics.get("seconds", 0.0)}
