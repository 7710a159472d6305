import json

import pytest

from keras_gmlp.training import precision


@pytest.fixture(autouse=True)
def on_a_cpu(monkeypatch):
    monkeypatch.setattr(precision, "accelerators", list)


@pytest.mark.parametrize(
    ("speedup", "expected"), [(0.02, "float32"), (1.05, "float32"), (1.9, "mixed_bfloat16")]
)
def test_faster_precision_is_chosen(monkeypatch, speedup, expected):
    monkeypatch.setattr(precision, "bfloat16_speedup", lambda: speedup)
    assert precision.choose_precision() == expected


def test_run_in_progress_keeps_its_precision(monkeypatch, tmp_path):
    monkeypatch.setattr(precision, "bfloat16_speedup", lambda: 2.0)
    (tmp_path / "recipe.json").write_text(json.dumps({"precision": "float32"}))
    assert precision.choose_precision(tmp_path) == "mixed_bfloat16"  # no epoch is done
    (tmp_path / "metrics.json").write_text("{}")
    assert precision.choose_precision(tmp_path) == "float32"


def test_accelerator_computes_in_bfloat16(monkeypatch):
    monkeypatch.setattr(precision, "accelerators", lambda: ["a GPU"])
    monkeypatch.setattr(precision, "bfloat16_speedup", lambda: pytest.fail("measured"))
    assert precision.choose_precision() == "mixed_bfloat16"
