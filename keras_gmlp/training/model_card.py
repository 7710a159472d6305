"""The model card of a run: a README.md in its folder, written by training and by export."""

import json
import re
import shlex
from pathlib import Path

from keras_gmlp.models.presets import IMAGE_PRESETS
from keras_gmlp.tasks.multi_label import MultiLabelClassification
from keras_gmlp.training import text_model_card
from keras_gmlp.training.model_card_parts import (
    export_row,
    grid,
    name_of,
    percent,
    table,
    training_section,
)
from keras_gmlp.utils.card import TEXT_TASKS
from keras_gmlp.utils.errors import first_of
from keras_gmlp.utils.files import atomic_write, read_json

FILE = "README.md"
NOTES = "<!-- notes -->"  # the text after this line is written by hand and survives

# What happens to a picture with each fit.
PREPARED = {
    "crop": "scaled until it covers them and then cut, so\n  small details and margins are lost.",
    "stretch": "stretched to them, so small details and its\n  proportions are lost.",
    "pad": "scaled to fit inside them, on black, so small\n  details are lost.",
}


def write_model_card(directory, metrics=None):
    """Writes the model card of a complete run and keeps the notes of an earlier one."""
    directory = Path(directory)
    path = directory / FILE
    recipe = read_json(directory / "recipe.json")
    metrics = metrics or read_json(directory / "metrics.json")
    if not recipe or not metrics or (path.exists() and not is_model_card(path)):
        return
    model = directory / "model.keras"
    megabytes = model.stat().st_size / 1e6 if model.exists() else None
    notes = re.split(f"(?m)^{NOTES}$", _read(path), maxsplit=1)[1] if path.exists() else "\n"
    text = model_card(_from_here(directory), recipe, metrics, megabytes)
    with atomic_write(path) as temporary:
        temporary.write_text(text + notes, "utf-8")


def is_model_card(path):
    """Returns whether a file is a model card: whether it has the line `NOTES`."""
    return Path(path).is_file() and re.search(f"(?m)^{NOTES}$", _read(path)) is not None


def _read(path):
    return Path(path).read_text("utf-8", errors="replace")


def model_card(place, recipe, metrics, megabytes=None):
    """Returns the text of a model card, in Markdown, up to and including the line `NOTES`."""
    if recipe.get("task") in TEXT_TASKS:
        sections = text_model_card.sections(place, recipe, metrics, megabytes)
    else:
        sections = _image_sections(place, recipe, metrics, megabytes)
    end = "<!-- Training and export write this file and keep the text after the next line. -->"
    return "\n\n".join([*sections, f"{end}\n{NOTES}"])


def _image_sections(place, recipe, metrics, megabytes):
    several = recipe.get("task") == MultiLabelClassification.name
    return (
        _summary(place, recipe, metrics),
        _usage(place, several),
        _accuracy(place, recipe, metrics, megabytes, several),
        *_confidence(metrics.get("calibration")),
        training_section(place, recipe),
        _limits(recipe, several, "calibration" in metrics),
    )


def _from_here(directory):
    """Returns the path from the working directory, or the name of a folder outside it."""
    directory = directory.resolve()
    here = Path.cwd()
    return (
        directory.relative_to(here).as_posix()
        if directory.is_relative_to(here)
        else (directory.name)
    )


def _summary(place, recipe, metrics):
    preset, labels = recipe.get("preset"), recipe.get("labels", [])
    rows = {"model": f"`{preset or recipe.get('model')}`", **_family(preset)}
    if "parameters" in metrics:
        rows["parameters"] = f"{metrics['parameters']:,}"
    if shape := recipe.get("image_shape"):
        height, width, channels = shape
        kind = {1: "grey", 3: "colour"}.get(channels, f"{channels} channels")
        rows["input"] = f"{width} by {height} pixels, {kind}, values from 0 to 255"
    rows["output"] = f"logits for {len(labels)} classes"
    return (
        f"# {name_of(place)}\n\nAn image classifier, trained with `keras_gmlp` on "
        f"`{recipe.get('data')}`.\n\n{table(rows)}\n\nClasses: {first_of(labels, 100)}."
    )


def _family(preset):
    if preset not in IMAGE_PRESETS:
        return {}
    family = IMAGE_PRESETS[preset][0]
    papers = re.findall(r"https://arxiv\.org/abs/([\d.]+\d)", family.__doc__ or "")
    links = [f"[arXiv {paper}](https://arxiv.org/abs/{paper})" for paper in papers]
    return {"family": ", ".join([f"`keras_gmlp.{family.__name__}`", *links])}


def _usage(place, several):
    use, result = (
        ('find_labels("docs/cat.jpg")', "the labels that apply, with their probabilities")
        if several
        else ('classify("docs/cat.jpg", top=3)', "up to three classes with their probabilities")
    )
    return f"""\
## Use it

```python
from keras_gmlp import inference

classifier = inference.load({json.dumps(place)})
print(classifier.{use})
```

It prints {result}, the most probable first."""


def _accuracy(place, recipe, metrics, megabytes, several):
    exports = metrics.get("exports", {})
    size = "" if megabytes is None else f"{megabytes:.3f}"
    headline = MultiLabelClassification.headline if several else "accuracy"
    score = headline.replace("_", " ")
    keras = [percent(metrics.get(f"test_{headline}")), "", size, ""]
    rows = [["`model.keras`", "Keras, float32", *keras]]
    rows += [export_row(name, entry) for name, entry in exports.items() if name != "keras"]
    lines = [
        f"## {score.capitalize()}",
        f"On {_tested(recipe)} of `{recipe.get('data')}`:",
        grid(["file", "format", score, "same class as Keras", "MB", "ms per image"], rows),
    ]
    if f"train_{headline}" in metrics:
        share = percent(metrics[f"train_{headline}"])
        lines.append(f"On at most 10,000 training images the Keras model has {share}.")
    if f"validation_{headline}" in metrics:
        share = percent(metrics[f"validation_{headline}"])
        lines.append(
            f"On validation images, which it did not train on either, the Keras model has {share}."
        )
    if "best_epoch" in metrics:
        lines.append(
            f"Of {metrics['epochs']} epochs, epoch {metrics['best_epoch']} was the best on the "
            "validation images; the model has its weights."
        )
    if len(rows) > 1:
        lines.append("The latency is the median on one thread of the machine that exported.")
    command = shlex.join([".venv/bin/python", "apps/export.py", place])
    lines.append(f"This command writes and checks all formats:\n\n```\n{command}\n```")
    return "\n\n".join(lines)


def _tested(recipe):
    """Returns which images the accuracy is for."""
    if not recipe.get("folds"):
        return "the test images"
    return f"fold {recipe.get('fold')} of {recipe['folds']}, left out from the training images"


def _confidence(result):
    """Returns the section on the calibration of a run, in a list; an empty one without it."""
    if not result:
        return []
    rows = {
        "temperature": f"{result['temperature']:.4f}",
        "energy threshold": f"{result['energy_threshold']:.4f}",
        "calibration error before": percent(result["calibration_error_before"]),
        "calibration error": percent(result["calibration_error"]),
        "rejected": percent(result["rejected"]),
    }
    if "auroc" in result:
        rows[f"rejected of {result['other_images']:,} other pictures"] = percent(
            result["other_rejected"]
        )
        rows["AUROC, known against other pictures"] = f"{result['auroc']:.4f}"
    split = "" if result["split"] == "all" else f"{result['split']} "
    return [
        f"## Confidence\n\nOn {result['images']:,} {split}images of `{result['data']}`, to which "
        f"both values were fitted:\n\n{table(rows)}"
    ]


def _limits(recipe, several, calibrated=False):
    height, width = recipe.get("image_shape", ("?", "?"))[:2]
    answers = "It names one of them for every picture, even if\n  the picture shows something else."
    if calibrated:
        answers = (
            "It rejects pictures that show\n  something else by their energy, but not all of them."
        )
    if several:
        answers = "A label applies if its\n  probability reaches its threshold."
    prepared = PREPARED.get(recipe.get("fit"), PREPARED["crop"])
    return f"""\
## Limits

- The model knows the classes above and no other. {answers}
- It reads {width} by {height} pixels. A picture is {prepared}
- The accuracy is for test images from the same source as the training images. Expect less for
  other pictures, such as your own photos.
- It is one run with one seed. Another seed gives a different accuracy.
- The licence of the training images is not recorded."""
