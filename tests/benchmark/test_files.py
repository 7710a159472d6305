"""The model files of a benchmark, and the candidates that follow from them."""

import dataclasses
import json
import subprocess
from pathlib import Path

import keras
from fake_worker import MODEL

from keras_gmlp.benchmark import files
from keras_gmlp.benchmark.files import Model, timm_architecture
from keras_gmlp.benchmark.runtimes import list_candidates, required_formats
from keras_gmlp.evaluation.flops import random_model
from keras_gmlp.utils.export_formats import DEFAULT_FORMATS


def test_candidates_of_a_model():
    model = Model("gmlp_s16_224", Path("m.keras"), (224, 224, 3), 1000, 1, 1, "gmlp_s16_224")
    model.files, model.errors = {"tflite": Path("m.tflite")}, {"saved_model": "no luck"}
    of_one = [c for c in list_candidates(model, [1, 2], [1, 64]) if c.threads == 1]
    assert [c.name for c in of_one] == [
        *("product-numpy", "product-torch", "keras-tensorflow", "keras-jax", "keras-torch"),
        *("tflite", "saved_model", "timm", "timm-compiled"),
    ]
    assert [(c.name, c.missing) for c in of_one if c.missing] == [("saved_model", "no luck")]
    only = list_candidates(MODEL, [1], [1], only=["timm", "tflite"])
    assert [(c.name, c.missing) for c in only][2:] == [("timm", "timm has no model like a")]


def test_openvino_reads_the_onnx_file():
    names = ["openvino", "openvino-bfloat16"]
    model = dataclasses.replace(MODEL, files={"onnx": Path("m.onnx")})
    both = list_candidates(model, [1], [1], only=names)[2:]
    assert [(c.name, c.settings["path"]) for c in both] == [(name, "m.onnx") for name in names]
    model = dataclasses.replace(MODEL, errors={"onnx": "no luck"})
    missing = [c.missing for c in list_candidates(model, [1], [1], only=names)[2:]]
    assert missing == ["requires the ONNX file (no luck)"] * 2
    assert required_formats() == list(DEFAULT_FORMATS)
    assert required_formats(["timm", "tflite"]) == ["tflite"]
    assert required_formats(["openvino", "tflite"]) == ["tflite", "onnx"]


def test_names_in_timm():
    assert timm_architecture("gmlp_s16_224") == "gmlp_s16_224"
    assert timm_architecture("deit_ti16_distilled_224") == "deit_tiny_distilled_patch16_224"
    assert timm_architecture("eamlp_7_224") is None
    assert timm_architecture("gmlp_n4_32") is None
    assert timm_architecture("unheard_of_224") is None


def test_random_model_has_no_weight_at_its_start():
    for weight in random_model("gmlp_n4_32").weights:
        if "seed" not in weight.path:
            values = keras.ops.convert_to_numpy(weight).ravel()
            assert len(set(values)) > len(values) / 2


def test_conversion_that_crashes_leaves_the_other_formats(monkeypatch, tmp_path):
    model = {**dataclasses.asdict(MODEL), "keras": "a.keras"}
    good = {"format": "tflite", "path": "model.tflite"}
    bad = {"format": "onnx", "error": "no luck"}
    processes = iter([([model, good], -11), ([model, bad], 0)])
    asked = []

    def run(command, **options):
        asked.append(command[5:])
        lines, code = next(processes)
        output = "\n".join(["a note of a library", *map(json.dumps, lines)])
        return subprocess.CompletedProcess(command, code, output, "")

    monkeypatch.setattr(subprocess, "run", run)
    found = files.prepare("a", tmp_path, ["tflite", "saved_model", "onnx"])
    assert asked == [["tflite", "saved_model", "onnx"], ["onnx"]]
    assert found.files == {"tflite": Path("model.tflite")}
    assert found.errors == {"saved_model": "exporting: ended by SIGSEGV", "onnx": "no luck"}
