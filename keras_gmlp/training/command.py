"""The shell command that repeats a run, from its recipe.json."""

import dataclasses
import json
import shlex

from keras_gmlp.models.language_families import TEXT_PRESETS
from keras_gmlp.models.presets import PRESETS
from keras_gmlp.training.recipes import PATCH_OPTIONS, RECIPES, RECIPES_BY_TASK, find_recipe
from keras_gmlp.training.settings import OPTIONS, flatten
from keras_gmlp.utils.card import TEXT_TASKS

WIDTH = 90  # of a line, in characters


def training_command(recipe, weights=None, out=None):
    """Returns the shell command that repeats a run, or `None` for a run that has no preset."""
    if recipe.get("task") in TEXT_TASKS:
        return _text_command(recipe, weights, out)
    preset, name = recipe.get("preset"), recipe.get("recipe")
    if preset not in PRESETS or name not in RECIPES:
        return None
    start = recipe.get("weights") and (weights or recipe["weights"])
    options = {"--model": preset, "--weights": start or None, "--data": recipe.get("data")}
    options |= {"--recipe": name, **_size_options(recipe, PRESETS[preset][1]["input_shape"])}
    parts = [_option(option, value) for option, value in options.items() if value is not None]
    parts += _setting_options(recipe, dataclasses.asdict(RECIPES[name]))
    return _finish("apps/train.py", [*parts, *_model_options(recipe)], recipe, out)


def _text_command(recipe, weights, out):
    """See `training_command`; expects prepared text in runs/, under its recorded name."""
    name, task = recipe.get("recipe"), recipe["task"]
    if name not in RECIPES_BY_TASK[task]:
        return None
    if task == "masked_lm":
        if recipe.get("preset") not in TEXT_PRESETS:
            return None
        options = [("--prepared", f"runs/{recipe.get('data')}"), ("--model", recipe["preset"])]
    else:
        options = [("--task", recipe.get("data")), ("--weights", weights or recipe.get("weights"))]
        options += _column_options(recipe.get("columns") or {})
        usual = {"held_out": ("--hold-out", 0), "dropout": ("--dropout", 0.1)}
        for key, (option, value) in usual.items():
            if recipe.get(key, value) != value:
                options.append((option, recipe[key]))
    parts = [_option(option, value) for option, value in [*options, ("--recipe", name)]]
    parts += _setting_options(recipe, dataclasses.asdict(find_recipe(name, task)))
    return _finish("apps/train_text.py", [*parts, *_model_options(recipe)], recipe, out)


def _model_options(recipe):
    """The options for the arguments of the model that differ from the preset's."""
    parts = []
    for argument, value in (recipe.get("overrides") or {}).items():
        text = value if isinstance(value, str) else json.dumps(value)
        parts.append(_option("--set-model", f"{argument}={text}"))
    return parts


def _column_options(columns):
    text = columns.get("text", [])
    options = [("--column", name) for name in ([text] if isinstance(text, str) else text)]
    return options + [(f"--{key}", columns[key]) for key in ("label", "test") if key in columns]


def _finish(program, parts, recipe, out):
    if backend := recipe.get("environment", {}).get("backend"):
        parts.append(_option("--backend", backend))
    if out:
        parts.append(_option("--out", out))
    return _wrap([f".venv/bin/python {program}", *parts])


def _size_options(recipe, usual_shape):
    """The options that set the images' size, the model's patches and the part of the data."""
    options = {}
    shape = recipe.get("image_shape")
    if shape and (recipe.get("weights") or tuple(shape[:2]) != tuple(usual_shape[:2])):
        height, width = shape[:2]
        options["--image-size"] = height if height == width else f"{height}x{width}"
    if recipe.get("weights") or recipe.get("fit") != "crop":  # weights have a fit of their own
        options["--fit"] = recipe.get("fit")
    for name in PATCH_OPTIONS:
        options[f"--{name.replace('_', '-')}"] = recipe.get(name)
    if recipe.get("fraction", 1) != 1:
        options["--fraction"] = recipe["fraction"]
    options |= {f"--{name}": recipe.get(name) for name in ("validation", "groups", "folds")}
    return options


def _setting_options(recipe, usual):
    """The options for the settings that differ from those of the named recipe."""
    settings = flatten({**recipe, "environment": None})
    parts = []
    for key, value in flatten(usual).items():
        new = settings.get(key, value)
        chosen = key == "precision" and key in settings  # the programs measure it otherwise
        if new == value and not chosen:
            continue
        if key == "freeze":
            parts.append("--freeze")
        elif key in OPTIONS:
            parts.append(_option(f"--{key.replace('_', '-')}", new))
        else:
            text = new if isinstance(new, str) else json.dumps(new)
            parts.append(_option("--set", f"{key}={text}"))
    return parts


def _option(name, value):
    return f"{name} {shlex.quote(str(value))}"


def _wrap(parts):
    """The parts of a command on lines of at most `WIDTH` characters."""
    lines = [parts[0]]
    for part in parts[1:]:
        if len(lines[-1]) + len(part) < WIDTH:
            lines[-1] += f" {part}"
        else:
            lines.append(part)
    return " \\\n    ".join(lines)
