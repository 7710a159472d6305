"""Costs of a sweep's models; conversion and measurement are replaced."""

import json

import pytest

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
    monkeypatch.setattr(costs, "export_run", export_run)
    monkeypatch.setattr(costs, "count_flops", lambda path: len(path.read_text()))
    monkeypatch.setattr(costs, "load", lambda path, threads: measured.append(path.read_bytes()))
    monkeypatch.setattr(
        costs, "measure_latencies", lambda models, repeats: dict.fromkeys(models, 0.0012345)
    )
    (run.directory / "model.keras").write_text("a model")
    for _ in range(2):
        assert costs.measure_costs([run]) == {"resmlp_n4_32": {"flops": 7, "latency_ms": 1.234}}
    assert exported == [["tflite"]]
    assert measured == [b"export of a model"] * 2
    assert json.loads((run.directory / "metrics.json").read_text()) == {"flops": 7}
