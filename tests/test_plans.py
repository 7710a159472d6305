"""The plans in docs/plans: readable, and of the sizes that they promise."""

from pathlib import Path

import pytest

from keras_gmlp.models.presets import build
from keras_gmlp.runs.queue import read_plan

PLANS = Path(__file__).resolve().parents[1] / "docs" / "plans"
SIZES = {"_02": (0.17e6, 0.27e6), "_08": (0.78e6, 0.86e6), "_4": (3.6e6, 4.6e6)}


@pytest.mark.parametrize("path", sorted(PLANS.glob("*.json")), ids=lambda path: path.stem)
def test_plan_can_be_read(path):
    runs = read_plan(path)
    assert runs
    if not path.stem.startswith("language"):
        assert {run.data.name for run in runs} == {"cifar10"}
        return
    trained = [run for run in runs if hasattr(run, "preset")]
    tuned = [run for run in runs if hasattr(run, "weights")]
    assert len(trained) + len(tuned) == len(runs)
    assert {run.weights for run in tuned} <= {run.directory for run in trained}
    assert all(run.data == f"runs/wiki{8 if 'nano' in path.stem else 16}k" for run in trained)


def test_capacity_compares_models_of_three_sizes():
    sizes = {}
    for run in read_plan(PLANS / "capacity.json"):
        name = Path(run.directory).name
        model = build(run.model.preset, **run.model.overrides)
        low, high = next(limits for end, limits in SIZES.items() if name.endswith(end))
        assert low <= model.count_params() <= high, (name, model.count_params())
        sizes.setdefault(name.rpartition("_")[0], []).append(model.count_params())
    assert all(len(counts) == 3 for counts in sizes.values())
