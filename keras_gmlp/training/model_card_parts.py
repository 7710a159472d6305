"""Sections and tables that the model cards of images and of texts share."""

from pathlib import Path

from keras_gmlp.training.settings import write_command
from keras_gmlp.utils.environment import accelerators

# The entries of metrics.json under "exports": the file and its format.
EXPORTS = {
    "tflite": ("model.tflite", "TFLite, 8-bit weights"),
    "tflite_float16": ("model_float16.tflite", "TFLite, float16 weights"),
    "tflite_float32": ("model_float32.tflite", "TFLite, float32"),
    "tflite_int8": ("model_int8.tflite", "TFLite, full integer"),
    "features": ("model_features.tflite", "TFLite with features, 8-bit weights"),
    "mediapipe": ("model_mediapipe.tflite", "TFLite for MediaPipe, 8-bit weights"),
    "saved_model": ("saved_model/", "SavedModel"),
    "onnx": ("model.onnx", "ONNX"),
}
BACKENDS = {"tensorflow": "TensorFlow", "jax": "JAX", "torch": "PyTorch"}


def training_section(place, recipe, picture="Accuracy and loss after each epoch"):
    """Returns the section on the training of a run; `picture` describes its curves.png."""
    rows = {"recipe": f"`{recipe.get('recipe')}`"} if recipe.get("recipe") else {}
    rows |= {name: recipe[name] for name in ("epochs", "seed") if name in recipe}
    if recipe.get("weights"):
        rows["starting weights"] = f"`{recipe['weights']}`"
    if recipe.get("fraction", 1) != 1:
        rows["training images used"] = percent(recipe["fraction"])
    rows |= _machine(recipe.get("environment", {}))
    if rows.get("epochs") == 0:
        shown = "A logistic regression on the features of the starting weights is the head."
        files = "`recipe.json` holds all settings and versions."
    else:
        shown = f"![{picture}](curves.png)"
        files = (
            "`recipe.json` holds all settings and versions, `history.csv` the figures of each "
            "epoch."
        )
    parts = ["## Training", shown, table(rows), *_choice(recipe.get("choice"))]
    return "\n\n".join([*parts, _reproduction(place, recipe), files])


def _choice(choice):
    """Returns what a run chose its settings from, in a list; an empty one without a choice."""
    if not choice:
        return []
    rows = [
        [row["name"], percent(row["accuracy"]), f"{row['loss']:.4f}", str(row["epochs"])]
        for row in choice["candidates"]
    ]
    kind = "held-out training" if choice["held_out"] else "validation"
    table_of_candidates = grid(["candidate", "accuracy", "loss", "epochs"], rows)
    return [f"{choice['images']:,} {kind} images chose the settings:\n\n{table_of_candidates}"]


def _reproduction(place, recipe):
    """The command that repeats the run, and what it cannot know."""
    name = name_of(place)
    replaced = recipe.get("weights") and Path(recipe["weights"]).name == name
    start = "START" if replaced else None
    command = write_command(recipe, weights=start, out=f"runs/{name}-again")
    if command is None:
        return "The run was started from Python, or by an older version: no command repeats it."
    text = f"This command repeats the run:\n\n```\n{command}\n```"
    if recipe.get("task") == "masked_lm":
        text += (
            "\n\n`--prepared` is the folder that `python -m keras_gmlp.data.text.corpus` wrote; it "
            "may be in another place."
        )
    if replaced:
        text += (
            f"\n\n`START` is the model that the run started from. It was in `{recipe['weights']}`, "
            "where this model has replaced it."
        )
    return text


def export_row(entry_name, entry):
    """Returns the cells of an exported file."""
    name, _, batch = entry_name.partition("_batch")
    file, form = EXPORTS.get(name, (entry_name, entry_name))
    if batch:
        file = file.replace(".tflite", f"_batch{batch}.tflite")
        form += f", {batch} images at once"
    if entry.get("folded"):
        form += ", folded"
    return [
        f"`{file}`",
        form,
        percent(entry.get("accuracy", entry.get("mean_average_precision"))),
        percent(entry.get("top1_agreement")),
        _number(entry.get("megabytes")),
        _number(entry.get("latency_ms")),
    ]


def _machine(environment):
    """Rows for the software and the hardware of a run."""
    backend, versions = environment.get("backend"), environment.get("versions", {})
    if not backend:
        return {}
    packages = ("tensorflow-cpu", "tensorflow") if backend == "tensorflow" else (backend,)
    version = next((versions[name] for name in packages if name in versions), "")
    software = f"Keras {versions.get('keras', '')} on {BACKENDS.get(backend, backend)} {version}"
    hardware = ", ".join(accelerators(environment.get("devices", [])))
    return {"software": software.strip(), "hardware": hardware or environment.get("processor", "")}


def table(rows):
    """Returns a table of two columns from a dict."""
    return grid(["", ""], [[name, str(value)] for name, value in rows.items()])


def grid(header, rows):
    """Returns a table in Markdown from lists of cells."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def percent(share):
    """Returns a share as text, such as `"83.87 %"`; empty for `None`."""
    return "" if share is None else f"{100 * share:.2f} %"


def _number(value):
    return "" if value is None else f"{value:.3f}"


def name_of(place):
    """Returns the name of a folder."""
    return Path(place).resolve().name
