import json

import pytest

from keras_gmlp.training import precision

pytestmark = pytest.mark.once


def test_faster_precision_is_chosen_and_a_run_in_progress_keeps_its_own(monkeypatch, tmp_path):
    monkeypatch.setattr(precision, "accelerators", list)
    for speedup, expected in ((1.05, "float32"), (1.9, "mixed_bfloat16")):
        monkeypatch.setattr(precision, "bfloat16_speedup", lambda speedup=speedup: speedup)
        assert precision.choose_precision() == expected
    (tmp_path / "recipe.json").write_text(json.dumps({"precision": "float32"}))
    assert precision.choose_precision(tmp_path) == "mixed_bfloat16"  # no epoch is done
    (tmp_path / "metrics.json").write_text("{}")
    assert precision.choose_precision(tmp_path) == "float32"
    # An accelerator computes in bfloat16.
    monkeypatch.setattr(precision, "accelerators", lambda: ["a GPU"])
    monkeypatch.setattr(precision, "bfloat16_speedup", lambda: pytest.fail("measured"))
    assert precision.choose_precision() == "mixed_bfloat16"
