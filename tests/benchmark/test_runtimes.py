"""Runtimes inside a worker."""

import sys

import numpy as np
import onnx
import pytest

from keras_gmlp.benchmark import runtimes

WEIGHTS = np.random.default_rng(0).normal(0, 0.01, (12, 3)).astype("float32")


@pytest.fixture(scope="module")
def linear(tmp_path_factory):
    """Settings for an ONNX file of a linear classifier of images of four pixels."""
    pixels, logits = (
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["batch", *shape])
        for name, shape in {"image": (2, 2, 3), "logits": (3,)}.items()
    )
    nodes = [
        onnx.helper.make_node("Flatten", ["image"], ["flat"]),
        onnx.helper.make_node("MatMul", ["flat", "weights"], ["logits"]),
    ]
    weights = [onnx.numpy_helper.from_array(WEIGHTS, "weights")]
    graph = onnx.helper.make_graph(nodes, "linear", [pixels], [logits], weights)
    version = onnx.helper.make_opsetid("", 18)
    path = tmp_path_factory.mktemp("linear") / "model.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[version], ir_version=10), path)
    shared = {"threads": 2, "shape": [2, 2, 3], "classes": 3}
    return {"name": "openvino", "path": str(path), **shared}


def test_openvino_computes_every_batch(linear):
    pytest.importorskip("openvino")
    logits = runtimes.RUNTIMES["openvino"].load(linear)
    rng = np.random.default_rng(1)
    for batch in (1, 4, 3, 4):  # 4 images are two requests
        images = rng.integers(0, 256, (batch, 2, 2, 3), "uint8")
        expected = images.reshape(batch, 12) @ WEIGHTS
        np.testing.assert_allclose(logits(images), expected, rtol=1e-4, atol=1e-4)


def test_openvino_computes_in_bfloat16_where_the_processor_can(linear):
    openvino = pytest.importorskip("openvino")
    settings = {**linear, "name": "openvino-bfloat16"}
    if "BF16" not in openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
        with pytest.raises(ValueError, match="requires a processor with bfloat16"):
            runtimes.RUNTIMES["openvino"].load(settings)
        return
    images = np.full((1, 2, 2, 3), 100, "uint8")
    found = runtimes.RUNTIMES["openvino"].load(settings)(images)
    np.testing.assert_allclose(found, images.reshape(1, 12) @ WEIGHTS, rtol=0.05, atol=0.5)


def test_without_openvino_the_row_says_how_to_install_it(linear, monkeypatch):
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(ValueError, match=r"pip install -e '\.\[openvino\]'"):
        runtimes.RUNTIMES["openvino"].load(linear)


def test_timm_computes_logits(timm):
    settings = {"name": "timm", "architecture": "mixer_s32_224", "shape": (32, 32, 3)}
    prepare = runtimes.load({**settings, "classes": 5, "threads": 1})
    assert prepare(2)().shape == (2, 5)
