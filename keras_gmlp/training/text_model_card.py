"""The model card of a run on text."""

import json
import re
import shlex

from keras_gmlp.models.presets import TEXT_PRESETS
from keras_gmlp.training.model_card_parts import (
    export_row,
    grid,
    name_of,
    percent,
    table,
    training_section,
)
from keras_gmlp.utils.errors import first_of

KINDS = {
    "masked_lm": "A masked language model",
    "text_classification": "A text classifier",
    "question_answering": "A model that finds answers in a text",
}
OUTPUTS = {
    "masked_lm": "logits for {words} tokens at each masked position",
    "text_classification": "logits for {classes} classes",
    "question_answering": "logits of the first and the last token of the answer",
}
CALLS = {
    "masked_lm": 'model.fill_mask("Paris is the [MASK] of France.", top=3)',
    "text_classification": 'model.classify("a gem of a film")',
    "pairs": 'model.classify("He left the house.", "He went out.")',
    "question_answering": 'model.answer("Who lives in Rome?", "A cat lives in Rome.")',
}
PRINTS = {
    "masked_lm": "It prints up to three words with their probabilities, the most probable first.",
    "text_classification": "It prints the classes with their probabilities, the most probable "
    "first.",
    "question_answering": "It prints the answer with its place in the text and its probability.",
}

# Names of the figures in metrics.json. Those of questions are in percent, as in SQuAD's program.
FIGURES = {
    "test_perplexity": "perplexity: {:.2f}",
    "test_accuracy": "accuracy: {}",
    "test_matthews_correlation": "Matthews correlation: {:.3f}",
    "test_exact_match": "exact match: {:.2f} %",
    "test_f1": "F1: {:.3f}",
}


def sections(place, recipe, metrics, megabytes=None):
    """Returns the sections of a model card, in Markdown; see `model_card.model_card`."""
    return (
        _summary(place, recipe, metrics),
        _usage(place, recipe),
        _results(place, recipe, metrics, megabytes),
        training_section(place, recipe, "Figures after each epoch"),
        _limits(recipe),
    )


def _summary(place, recipe, metrics):
    preset, task, labels = recipe.get("preset"), recipe["task"], recipe.get("labels", [])
    rows = {"model": f"`{preset or recipe.get('model')}`", **_family(preset)}
    if "parameters" in metrics:
        rows["parameters"] = f"{metrics['parameters']:,}"
    texts = "a pair of texts" if recipe.get("pairs") else "a text"
    rows["input"] = f"{texts}, up to {recipe.get('length')} tokens in all"
    words = f"{recipe['vocabulary_size']:,}" if "vocabulary_size" in recipe else ""
    rows["output"] = OUTPUTS[task].format(words=words, classes=len(labels))
    text = (
        f"# {name_of(place)}\n\n{KINDS[task]}, trained with `keras_gmlp` on "
        f"`{recipe.get('data')}`.\n\n{table(rows)}"
    )
    return f"{text}\n\nClasses: {first_of(labels, 100)}." if labels else text


def _family(preset):
    if preset not in TEXT_PRESETS:
        return {}
    family = TEXT_PRESETS[preset][0]
    papers = re.findall(r"https://arxiv\.org/abs/([\d.]+\d)", family.__doc__ or "")
    links = [f"[arXiv {paper}](https://arxiv.org/abs/{paper})" for paper in papers]
    return {"family": ", ".join([f"`keras_gmlp.text.{family.__name__}`", *links])}


def _usage(place, recipe):
    task = recipe["task"]
    return f"""\
## Use it

```python
from keras_gmlp import text

model = text.load({json.dumps(place)})
print({CALLS["pairs" if recipe.get("pairs") else task]})
```

{PRINTS[task]}"""


def _results(place, recipe, metrics, megabytes):
    figures = FIGURES
    if recipe["task"] == "question_answering":
        figures = {**FIGURES, "test_f1": "F1: {:.2f} %"}
    values = {**metrics, "test_accuracy": percent(metrics.get("test_accuracy"))}
    shown = {key: text.format(values[key]) for key, text in figures.items() if key in metrics}
    held = recipe.get("held_out")
    where = f"{percent(held)} of the training texts" if held else "the validation texts"
    size = "" if megabytes is None else f"{megabytes:.3f}"
    accuracy = percent(metrics.get("test_accuracy"))
    rows = [["`model.keras`", "Keras, float32", accuracy, "", size, ""]] if size else []
    exports = metrics.get("exports", {})
    rows += [export_row(name, entry) for name, entry in exports.items()]
    header = ["file", "format", "accuracy", "same answer as Keras", "MB", "ms per text"]
    if not recipe.get("labels"):  # exports of the other tasks are compared with Keras alone
        header, *rows = [[*row[:2], *row[3:]] for row in (header, *rows)]
    lines = [
        "## Results",
        f"On {where} of `{recipe.get('data')}`:",
        ", ".join(shown.values()) + ".",
    ]
    lines.append(grid(header, rows))
    if exports:
        lines.append(
            "Files are checked on at most 1,000 texts. The latency is the median on one thread of "
            "the machine that exported."
        )
    if not size:
        lines.append("The Keras model is not included; the command below trains it again.")
        return "\n\n".join(lines)
    data = " --data TEXT" if recipe["task"] == "masked_lm" else ""
    command = f".venv/bin/python apps/export.py {shlex.quote(str(place))}{data}"
    lines.append(f"This command writes and checks all formats:\n\n```\n{command}\n```")
    return "\n\n".join(lines)


def _length_limit(recipe):
    if recipe["task"] == "question_answering":
        return f"It reads a text in overlapping parts, {recipe.get('length')} tokens at a time."
    return f"A text above {recipe.get('length')} tokens loses its end."


def _limits(recipe):
    own = {
        "masked_lm": "It knows what its training text says, and has no notion of what is true.",
        "text_classification": "It knows the classes above and no other. It names one of them for "
        "every text, even if the text is about something else.",
        "question_answering": "It marks a part of the text, even if the text has no answer.",
    }
    return f"""\
## Limits

- {own[recipe["task"]]}
- {_length_limit(recipe)}
- The figures are for texts from the same source as the training texts. Expect less for others.
- It is one run with one seed. Another seed gives other figures.
- It can repeat what people wrote in the training texts, prejudice included.
- The licence of the training texts is not recorded."""
