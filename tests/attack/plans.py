"""Odd plans of `runs.queue`."""

import json

from attack.kinds import SilentLossError
from attack.mutations import VALUES, mutate, mutate_json
from keras_gmlp.runs.queue import read_plan, work
from keras_gmlp.runs.run import restore_settings

PLAN = [
    {"model": "gmlp_n4_32", "data": "cifar10", "recipe": "long", "directory": "runs/a"},
    {
        "model": {"preset": "vit_n4_32", "patch_size": 4, "overrides": {"depth": 2}},
        "data": {"name": "photos", "image_size": [32, 48], "fraction": 0.5, "fit": "pad"},
        "changes": {"epochs": 3, "mixup": 0.2, "learning_rate": 1e-3},
        "directory": "runs/b",
    },
    {"preset": "gmlp_small", "data": "runs/wiki", "recipe": "standard", "directory": "runs/lm"},
    {"weights": "runs/lm", "data": "sst2", "changes": {"seed": 1}, "directory": "runs/sst2-1"},
]

VALUES = (*VALUES, 10**400, "runs/a", "./runs/a", "vit_n4_32", {"epochs": -1}, {"preset": 5})


class Plans:
    """Each case is a plan and a report; the queue has no time to train."""

    def __init__(self, folder):
        work([], 0)  # imports Keras

    def make(self, rng, folder):
        plan = mutate_json(PLAN, rng)
        if isinstance(plan, list) and rng.random() < 0.5:
            entry = rng.choice([entry for entry in plan if isinstance(entry, dict)] or [{}])
            name = rng.choice(("model", "data", "changes", "directory", "recipe", "overrides", "x"))
            entry[name] = rng.choice(VALUES)
        text = json.dumps(plan).encode()
        if rng.random() < 0.2:
            text = mutate(text, rng)
        if rng.random() < 0.02:
            text = rng.choice((b"[", b'[{"model":')) * 100_000
        path = folder / "plan.json"
        path.write_bytes(text)
        return path, folder / rng.choice(("report.json", "new/report.json", "", "plan.json/x"))

    def check(self, case):
        path, report = case
        runs = read_plan(path)
        for run in runs:
            if restore_settings(json.loads(run.to_json())) != run:
                raise SilentLossError(f"another run than {run.to_json()}")
        results = work(runs, 0, report)
        assert len(results) == len(runs)
        assert json.loads(report.read_text()) == results
