"""Costs of a sweep's models; conversion and measurement are replaced."""

import json
import zipfile

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


@pytest.fixture
def measured(monkeypatch):
    """The content of each TFLite file that is measured."""
    contents = []

    def export_run(directory, formats):
        assert formats == ["tflite"]
        model = (directory / "model.keras").read_bytes()
        (directory / "model.tflite").write_bytes(b"export of " + model)

    monkeypatch.setattr(costs, "export_run", export_run)
    monkeypatch.setattr(costs, "count_flops", lambda path: len(path.read_text()))
    monkeypatch.setattr(costs, "load", lambda path, threads: contents.append(path.read_bytes()))
    monkeypatch.setattr(
        costs, "measure_latencies", lambda models, repeats: dict.fromkeys(models, 0.0012345)
    )
    return contents


@pytest.mark.parametrize("folded", [False, True])
def test_latency_is_that_of_the_model_as_it_was_trained(run, measured, folded):
    (run.directory / "model.keras").write_text("a model")
    with zipfile.ZipFile(run.directory / "model.tflite", "w") as archive:
        archive.writestr("card.json", json.dumps({"folded": folded}))
        archive.writestr("labels.txt", "a")
    own = (run.directory / "model.tflite").read_bytes()
    assert costs.measure_costs([run]) == {"resmlp_n4_32": {"flops": 7, "latency_ms": 1.234}}
    assert measured == [b"export of a model" if folded else own]
    assert (run.directory / "model.tflite").read_bytes() == own


def test_run_without_a_model_is_reported(run):
    lines = []
    assert costs.measure_costs([run], lines.append) == {"resmlp_n4_32": {}}
    assert lines[0].startswith("resmlp_n4_32-seed0: ")
