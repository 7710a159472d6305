"""What a run chose its settings from, and the file that keeps it until the run has its own."""

import dataclasses
import json
from pathlib import Path

from keras_gmlp.training import run_directory
from keras_gmlp.utils.files import read_json

HEAD = "linear head"  # name of the candidate without training
GAIN = 0.98  # of the loss of the head that training must get below


@dataclasses.dataclass(frozen=True)
class Choice:
    """Settings that images chose which no candidate trained on."""

    changes: dict  # settings of the recipe
    images: int
    held_out: bool  # whether they are training images, on which the run then trains too
    candidates: list  # rows with name, epochs, accuracy, loss and seconds

    def record(self):
        """Returns the entry of `recipe.json`, which is the same when the choice is repeated."""
        rows = [{k: v for k, v in row.items() if k != "seconds"} for row in self.candidates]
        return {**dataclasses.asdict(self), "candidates": rows}

    def best(self):
        """Returns the candidate that was chosen."""
        return choose_best(self.candidates)

    def lines(self):
        """Returns a table of the candidates, a list of lines."""
        kind = "held-out training" if self.held_out else "validation"
        lines = [f"candidates, on {self.images:,} {kind} images:"]
        lines.append(f"  {'':24} accuracy   loss  best epoch  seconds")
        for row in self.candidates:
            epoch = f"{row['best_epoch']} of {row['epochs']}" if row["epochs"] else ""
            mark = "  chosen" if row == self.best() else ""
            lines.append(
                f"  {row['name']:24} {100 * row['accuracy']:6.2f} % {row['loss']:6.3f}  {epoch:>10}"
                f"  {row['seconds']:7.1f}{mark}"
            )
        if len(self.candidates) == 1 and self.candidates[0]["accuracy"] == 1:
            lines.append("the head names all of these images, so nothing else was tried")
        return lines


def choose_best(candidates):
    """Returns the candidate of the highest accuracy, then of the lowest loss."""
    # Over the head, training has to gain clearly in the loss as well: on a few hundred images the
    # accuracy alone, or a loss that is hardly lower, is often chance.
    head, *trained = candidates
    lower = GAIN * head["loss"]
    gains = [r for r in trained if r["accuracy"] >= head["accuracy"] and r["loss"] < lower]
    return max(gains or [head], key=lambda row: (row["accuracy"], -row["loss"]))


def choice_path(directory):
    """Returns the file that keeps a choice until the run has its own record of it."""
    return Path(directory, run_directory.CANDIDATES, run_directory.CHOICE)


def read_choice(directory, settings):
    """Returns the choice of the run in a folder, or `None`."""
    found = read_json(choice_path(directory))
    if isinstance(found, dict):
        made_for = found.pop("settings", None)
        if made_for and made_for != json.loads(json.dumps(settings)):
            raise ValueError(
                f"{directory}: holds a choice for other settings. Give the same settings to resume "
                "it, choose another directory, or start again with --restart (restart=True)."
            )
    elif run_directory.has_progress(directory):
        found = run_directory.read_recipe(directory).get("choice")
        if isinstance(found, dict):
            rows = [{"seconds": 0.0, **row} for row in found.get("candidates", ())]
            found = {**found, "candidates": rows}
    try:
        return None if found is None else Choice(**found)
    except TypeError:
        raise ValueError(
            f"{directory}: its choice of settings is damaged; start the run again with --restart "
            "(restart=True)."
        ) from None
