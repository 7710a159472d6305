"""A sweep: presets x seeds x shares of the training set, each a run of a plan."""

import dataclasses
from pathlib import Path

from keras_gmlp.comparison.plan import Plan
from keras_gmlp.data.datasets import canonical_name
from keras_gmlp.data.images.packed import is_packed
from keras_gmlp.models.presets import lookup


class Sweep(Plan):
    """Trains one model for each combination of preset, seed and share of the training set.

    Args:
        presets: Keys of `keras_gmlp.PRESETS`.
        settings: `RunSettings` that all runs share. Preset, seed, fraction and directory are
            replaced in each run.
        directory: Folder that holds the folders of the runs.
        seeds: Seeds of weights, order and augmentation.
        fractions: Shares of the training samples, in (0, 1].
        jobs, backend: As in `Plan`.

    Raises:
        ValueError: If the settings cannot work, or `jobs` exceeds the cores.

    Example:
        sweep = Sweep(["gmlp_n4_32", "vit_n4_32"], RunSettings(data="cifar10"), "runs/sweep")
        sweep.work()
        write_results(sweep.runs, "runs/results.csv")
    """

    def __init__(
        self, presets, settings, directory, *, seeds=(0,), fractions=(1.0,), jobs=1, backend=None
    ):
        super().__init__(plan_runs(presets, settings, directory, seeds, fractions), jobs, backend)

    def describe(self, settings):
        """Returns what `recipe.json` says of a run, with backend and image size."""
        recorded = {**super().describe(settings), "backend": self.backend}
        recorded["data"] = canonical_name(settings.data.name)
        if settings.data.image_size:
            recorded["image_size"] = list(settings.data.size)
        elif not settings.model.weights:
            recorded["image_size"] = list(lookup(settings.model.preset)[1]["input_shape"][:2])
        if settings.data.fit:
            recorded["fit"] = settings.data.fit
        elif not settings.model.weights and not is_packed(recorded["data"]):
            recorded["fit"] = "crop"
        return recorded


def plan_runs(presets, shared, directory, seeds=(0,), fractions=(1.0,)):
    """Returns the settings of all runs, the first seed and the whole training set first."""
    presets, seeds, fractions = map(dict.fromkeys, (presets, seeds, fractions))
    return [
        dataclasses.replace(
            shared,
            model=dataclasses.replace(shared.model, preset=preset),
            data=dataclasses.replace(shared.data, fraction=fraction),
            changes={**shared.changes, "seed": seed},
            directory=str(Path(directory) / run_name(preset, seed, fraction)),
        )
        for seed in seeds
        for fraction in sorted(fractions, reverse=True)
        for preset in presets
    ]


def run_name(preset, seed, fraction):
    """Returns the name of a run's folder."""
    return f"{preset}{'' if fraction == 1 else f'-{fraction:g}'}-seed{seed}"
