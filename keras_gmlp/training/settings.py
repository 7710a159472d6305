"""Settings of a run by name: changing and comparing them; the command that repeats a run."""

import dataclasses
import json
import shlex

from keras_gmlp.tasks.image_classification import ImageClassification
from keras_gmlp.training.recipes import list_recipes

# Settings with an option of their own in apps/train.py; the others require --set.
OPTIONS = ("epochs", "batch_size", "learning_rate", "seed", "precision", "patience")

AUTO = "auto"  # a run records what it chose
COMMAND = "command"  # entry of recipe.json: the options that repeat the run
WIDTH = 90  # of a line of a command, in characters


def setting_names(settings):
    """Returns the names of all settings in a recipe, its task and the task's parts, a set."""
    names = set()
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        names |= setting_names(value) if dataclasses.is_dataclass(value) else {field.name}
    return names


def override(settings, changes):
    """Returns a recipe with some settings changed, wherever they belong."""
    known = setting_names(settings)
    if unknown := sorted(set(changes) - known):
        raise ValueError(
            f"{unknown[0]}: no such setting; expected one of: {', '.join(sorted(known))}."
        )
    values = {}
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if dataclasses.is_dataclass(value):
            own = setting_names(value).intersection(changes)
            values[field.name] = override(value, {name: changes[name] for name in own})
        elif field.name in changes:
            values[field.name] = changes[field.name]
    return dataclasses.replace(settings, **values)


def differences(recorded, settings):
    """Returns a phrase for each setting that differs from a run's `recipe.json`."""
    images = {"task": ImageClassification.name}  # which do not name their task
    recorded, settings = (
        {**images, **each, **(each.get("augmentation") or {})} for each in (recorded, settings)
    )
    compared = recorded.keys() - {COMMAND, "augmentation"}
    return [
        f"{name} {recorded[name]!r} there, {value!r} here"
        for name, value in settings.items()
        if name in compared and value not in (recorded[name], AUTO)
    ]


def describe(recorded):
    """Returns the name of a run's recipe and the settings that differ from it."""
    name = recorded.get("recipe", "")
    recipes = list_recipes(recorded.get("task")) if name else {}
    if name not in recipes:
        return name
    usual = recipes[name].settings()
    values = flatten({key: recorded[key] for key in usual if key in recorded})
    usual = flatten(usual)
    changed = [key for key in usual if key in values and values[key] != usual[key]]
    return ", ".join([name, *(f"{k}={values[k]}" for k in changed if k not in ("epochs", "seed"))])


def flatten(settings):
    """Returns the settings with nested ones, such as the augmentation's, on the top level."""
    flat = {}
    for name, value in settings.items():
        flat |= flatten(value) if isinstance(value, dict) else {name: value}
    return flat


def write_command(recorded, **replaced):
    """Returns the shell command that repeats a run, or `None` if its recipe.json has no options."""
    if not isinstance(recorded.get(COMMAND), dict):
        return None
    options = {**recorded[COMMAND], **replaced}
    options.pop("fold", None)  # a part of --folds
    options["backend"] = recorded.get("environment", {}).get("backend")
    options["out"] = options.pop("out", None)
    lines = [shlex.join([".venv/bin/python", f"apps/{options.pop('program', 'train')}.py"])]
    for name, value in options.items():
        for part in _spell(f"--{name.replace('_', '-')}", value):
            if len(lines[-1]) + len(part) < WIDTH:
                lines[-1] += f" {part}"
            else:
                lines.append(part)
    return " \\\n    ".join(lines)


def _spell(option, value):
    """Returns an option in a shell, once for each part of its value."""
    if value is None or value is True:
        return [shlex.quote(option)] * (value is True)
    if option == "--image-size" and isinstance(value, list):
        value = "x".join(map(str, value))
    if isinstance(value, dict):
        texts = {k: v if isinstance(v, str) else json.dumps(v) for k, v in value.items()}
        value = [f"{name}={text}" for name, text in texts.items()]
    values = value if isinstance(value, list) else [value]
    return [shlex.join([option, str(part)]) for part in values]
