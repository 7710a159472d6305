"""Costs of a sweep's models; conversion and measurement are replaced."""

import json
from types import SimpleNamespace

import pytest

from keras_gmlp import ViT, gMLP
from keras_gmlp.comparison import costs
from keras_gmlp.comparison.plan import PlannedRun, plan_images
from keras_gmlp.runs import RunSettings


@pytest.fixture
def run(tmp_path):
    run = PlannedRun(*plan_images(["resmlp_n4_32"], RunSettings(), tmp_path))
    run.directory.mkdir(parents=True)
    (run.directory / "metrics.json").write_text("{}")
    return run


def test_the_model_of_a_run_is_exported_once_and_measured(run, monkeypatch):
    exported, measured = [], []

    def export_run(directory, formats):
        exported.append(formats)
        model = (directory / "model.keras").read_bytes()
        (directory / "model.tflite").write_bytes(b"export of " + model)

    lines = []
    assert costs.measure_costs([run], lines.append) == {"resmlp_n4_32": {}}
    assert lines[0].startswith("resmlp_n4_32-seed0: ")  # it has no model

    def load(path, threads):
        measured.append(path.read_bytes())
        return SimpleNamespace(logits=len, image_shape=(8, 8, 3))

    monkeypatch.setattr(costs, "export_run", export_run)
    monkeypatch.setattr(costs, "count_flops", lambda path: len(path.read_text()))
    monkeypatch.setattr(costs, "load", load)
    monkeypatch.setattr(costs, "time_calls", lambda calls, _: dict.fromkeys(calls, 0.0012345))
    (run.directory / "model.keras").write_text("a model")
    for _ in range(2):
        assert costs.measure_costs([run]) == {"resmlp_n4_32": {"flops": 7, "latency_ms": 1.234}}
    assert exported == [["tflite"]]
    assert measured == [b"export of a model"] * 2
    assert json.loads((run.directory / "metrics.json").read_text()) == {"flops": 7}


SMALL = {"dim": 8, "depth": 2, "patch_size": 4, "input_shape": (16, 16, 3), "classes": 5}


def test_flops_of_gmlp_by_hand(tmp_path):
    tokens, dim, hidden, depth = 16, 8, 24, 2
    stem = tokens * 4 * 4 * 3 * dim
    block = tokens * dim * hidden + tokens * tokens * hidden // 2 + tokens * hidden // 2 * dim
    gMLP(hidden_dim=hidden, **SMALL).save(tmp_path / "model.keras")
    assert costs.count_flops(tmp_path / "model.keras") == 2 * (stem + depth * block + dim * 5)


def test_flops_of_attention_by_hand(tmp_path):
    patches, tokens, dim = 16, 17, 8
    stem = patches * 4 * 4 * 3 * dim
    attention = 4 * tokens * dim * dim + 2 * tokens * tokens * dim
    block = attention + 2 * tokens * dim * 4 * dim
    ViT(num_heads=2, **SMALL).save(tmp_path / "model.keras")
    assert costs.count_flops(tmp_path / "model.keras") == 2 * (stem + 2 * block + dim * 5)
