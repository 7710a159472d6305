"""Chooses how to fine-tune: a linear head, or training of all layers at one of two rates.

Images that no candidate trains on decide: the data's validation images or, without them, a share of
the training images. Test images never decide. Each candidate trains as the run will, for the epochs
that `plan_training` gives for a number of images: the choice depends on the data only, not on the
machine. If the head is right on all images that decide, no training is tried, because it cannot
show a gain. The run then trains from the start with the chosen settings, on all training images.
"""

import dataclasses

import keras

from keras_gmlp.data.run_folder import Run
from keras_gmlp.data.validation import find_held_out
from keras_gmlp.models.precision import in_float32
from keras_gmlp.runs.prepare import build
from keras_gmlp.tasks import linear_head
from keras_gmlp.tasks.image_classification import ImageClassification
from keras_gmlp.training import run_directory
from keras_gmlp.training.devices import find_process
from keras_gmlp.training.pipeline import choose_pipeline, fit, prepare_fit

HEAD = "linear head"  # name of the candidate without training
GAIN = 0.98  # of the loss of the head that training must get below
SHARE = 0.2  # of the training images, held out
RATES = (1e-3, 3e-4)
MOST_IMAGES = 100_000  # of more, short candidates cost much and show little

# Settings that fix what would be chosen, or that the candidates do not cover.
FIXING = {"epochs", "freeze", "patience", "optimizer", "teacher"}


def plan_training(images):
    """Returns how long all layers train on a number of images, and in which batches."""
    return {"epochs": 8 if images <= 2_000 else 4, "batch_size": 16 if images < 300 else 32}


@dataclasses.dataclass(frozen=True)
class Choice:
    """Settings that images chose which no candidate trained on."""

    changes: dict  # settings of the recipe
    images: int
    held_out: bool  # whether they are training images, on which the run then trains too
    candidates: list  # rows with name, epochs, accuracy and loss

    def lines(self):
        """Returns a table of the candidates, a list of lines."""
        kind = "held-out training" if self.held_out else "validation"
        lines = [f"candidates, on {self.images:,} {kind} images:"]
        lines.append(f"  {'':24} accuracy   loss  epochs")
        for row in self.candidates:
            mark = "  chosen" if row == choose_best(self.candidates) else ""
            lines.append(
                f"  {row['name']:24} {100 * row['accuracy']:6.2f} % {row['loss']:6.3f}"
                f"  {row['epochs']:6}{mark}"
            )
        if len(self.candidates) == 1 and self.candidates[0]["accuracy"] == 1:
            lines.append("the head names all of these images, so nothing else was tried")
        return lines


def choose_best(candidates):
    """Returns the candidate of the highest accuracy, then of the lowest loss."""
    # Over the head, training has to gain clearly in the loss as well: on a few hundred images a
    # higher accuracy, or a loss that is hardly lower, is often chance.
    head, *trained = candidates
    lower = GAIN * head["loss"]
    gains = [r for r in trained if r["accuracy"] >= head["accuracy"] and r["loss"] < lower]
    return max(gains or [head], key=lambda row: (row["accuracy"], -row["loss"]))


def choose(prepared, *, restart=False, report=lambda text: None, verbose="auto"):
    """Chooses the settings of a fine-tuning that its own settings leave open.

    Given settings stay as they are; with `FIXING` nothing is chosen, with `epochs` of 0 only the
    regularization of the head is. The choice of a run that has begun is read from its
    `recipe.json`, unless it restarts. Returns a `Choice` and the features of the training images,
    or `None` for what was not made.
    """
    directory = prepared.settings.out
    if not can_choose(prepared):
        return None, None
    run_directory.refuse_other_files(directory)
    if not restart and run_directory.has_progress(directory):
        found = Run(directory).recipe.get("choice")  # none if it began without one
        return found and Choice(**found), None
    kept, cut = slice(None), None
    if prepared.data.validation is None:
        try:
            kept, cut = find_held_out(prepared.data, SHARE, prepared.settings.groups)
        except ValueError as error:  # groups that are too large for a fifth
            report(f"nothing is chosen: {error}")
            return None, None
    choice, vectors = search(prepared, kept, cut, report, verbose)
    for line in choice.lines():
        report(line)
    return choice, vectors


def can_choose(prepared):
    """Returns whether a run leaves settings open that images can choose."""
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
        and find_process()[1] == 1
        and keras.distribution.distribution() is None
        and len(prepared.data.train) <= MOST_IMAGES
    ):
        return False
    labels = prepared.data.train.labels.tolist()
    return len(labels) > len(set(labels)) > 1


def search(prepared, kept, cut, report, verbose):
    """Tries the candidates; returns the `Choice`, and features and labels of the training images.

    The training images at the places in `cut` decide, or the validation images if it is `None`.
    """
    settings, data, model = prepared.settings, prepared.data, prepared.model
    task, classes = prepared.recipe.task, len(data.labels)
    whole = dataclasses.replace(data, train=data.train.keep())
    report("fitting a linear head to the features")
    vectors, labels = linear_head.read_training_features(model, whole, task)
    if cut is None:
        other = data.validation
        views = linear_head.choose_views(len(labels), mirror=False)[:1]
        (tested,), expected = linear_head.read_features(model, other, views)
    else:
        other = whole.train.take(cut)
        tested, expected = vectors[0, cut], labels[cut]
    given = settings.changes.get("fit_head")
    strengths = [given] if given else linear_head.STRENGTHS
    weights = task.class_weights(labels[kept], classes)
    heads = list(linear_head.fit_head(vectors[:, kept], labels[kept], classes, strengths, weights))
    scores = [linear_head.score_head(*head, tested, expected) for head in heads]
    best = min(range(len(heads)), key=lambda i: (scores[i][1], -scores[i][0]))
    accuracy, loss = (round(score, 6) for score in scores[best])
    row = {"name": HEAD, "epochs": 0, "accuracy": accuracy, "loss": loss}
    rows = [{**row, "fit_head": strengths[best]}]
    # Where the head is right on all these images, they cannot show a gain.
    if accuracy < 1 and not settings.leaves_head:
        part = {"train": whole.train.take(kept), "validation": other, "test": other}
        part = dataclasses.replace(data, **part)
        given = settings.changes.get("learning_rate")
        for rate in RATES if given is None else [given]:
            report(f"training at the rate {rate:g}")
            changes = {**plan_training(len(whole.train)), **settings.changes}
            changes |= {"learning_rate": rate, "fit_head": strengths[best]}
            run = build(settings.with_changes(**changes), prepared.source, part)
            rows.append(_try_training(run, heads[best], verbose))
    chosen = choose_best(rows)
    changes = {"epochs": chosen["epochs"], "fit_head": strengths[best]}
    if chosen["epochs"]:
        changes |= {name: chosen[name] for name in ("learning_rate", "batch_size")}
    return Choice(changes, len(other), cut is not None, rows), (vectors, labels)


def _try_training(run, head, verbose):
    """Trains a candidate from a head on; returns its row."""
    recipe = dataclasses.replace(run.recipe, pipeline=choose_pipeline(run.recipe, run.data))
    linear_head.set_head(run.model, *head)
    fit(*prepare_fit(run.model, run.data, recipe), run.data, recipe, [], verbose=verbose)
    final = in_float32(run.model)
    recipe.task.compile(final, "sgd")
    found = recipe.task.evaluate(final, run.data, "validation")
    row = {"name": f"all layers, rate {recipe.learning_rate:g}"}
    row |= {"learning_rate": recipe.learning_rate, "batch_size": recipe.batch_size}
    row |= {"fit_head": recipe.task.fit_head, "epochs": recipe.epochs}
    return {**row, "accuracy": found["accuracy"], "loss": found["loss"]}
