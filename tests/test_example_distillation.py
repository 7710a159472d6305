"""The example of distillation: the order of an epoch, and a student from end to end."""

import gc
import importlib
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
from pictures import write_noise
from tiny_run import Kill

import keras_gmlp

EXAMPLE = Path(__file__).parents[1] / "examples" / "distillation"


@pytest.fixture(scope="module")
def example():
    """A function that imports a module of the example by its name."""
    sys.path.insert(0, str(EXAMPLE))
    yield importlib.import_module
    sys.path.remove(str(EXAMPLE))


def write_teacher(path):
    """Writes an ONNX model whose features are the mean colours of a picture."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    graph = helper.make_graph(
        [helper.make_node("ReduceMean", ["pictures", "axes"], ["features"], keepdims=0)],
        "teacher",
        [helper.make_tensor_value_info("pictures", TensorProto.FLOAT, ["batch", 4, 4, 3])],
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, ["batch", 3])],
        [numpy_helper.from_array(np.array([1, 2], "int64"), "axes")],
    )
    opset = [helper.make_opsetid("", 18)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), path)


@pytest.fixture(scope="module")
def sources(example, tmp_path_factory):
    """A folder with a teacher and two sources: `labelled` and `plain`."""
    folder = tmp_path_factory.mktemp("distillation")
    write_teacher(folder / "teacher.onnx")
    write_noise(folder / "pets", "png", 12, 12)
    write_noise(folder / "photos", "png", 16, 16)
    main = example("store_features").main
    teacher = str(folder / "teacher.onnx")
    labelled = ["--out", str(folder / "labelled"), "--labelled", "--views", "1", "--size", "12"]
    main([teacher, str(folder / "pets"), *labelled])
    plain = ["--out", str(folder / "plain"), "--views", "2", "--size", "16"]
    main([teacher, str(folder / "photos" / "a"), *plain])
    return folder


def test_epochs_take_each_picture_as_often_as_its_share_says(example, sources):
    pictures = example("sources").Pictures(sources / "plain", share=0.4)
    rows = np.concatenate([pictures.choose(epoch) for epoch in range(5)])  # two passes
    assert sorted(map(tuple, rows)) == [(i, view) for i in range(10) for view in (0, 1)]
    views, features = pictures.read(rows[:3], 8)
    assert views.shape == (3, 8, 8, 3)
    live = example("sources").Teacher(sources / "teacher.onnx").answer(pictures, rows[:3])
    np.testing.assert_allclose(features, live, rtol=1e-3)


# The history of a run that was killed stays open.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_student_learns_and_resumes_after_a_kill(example, sources, monkeypatch):
    train = example("train_student")
    sizes = '{"input_shape": [16, 16, 3], "patch_size": 4, "classes": 2, "dim": 8, "depth": 1}'
    command = [f"{sources / 'labelled'}=1", f"{sources / 'plain'}=2", "--model", "gmlp_n4_32"]
    command += ["--set-model", sizes, "--batch-size", "8", "--epochs", "3"]
    train.main([*command, "--out", str(sources / "whole")])
    whole = keras_gmlp.load_model(sources / "whole" / "model.keras", compile=False)

    set_epoch = train.Batches.set_epoch

    def kill(batches, epoch):
        if epoch == 2:
            raise Kill
        set_epoch(batches, epoch)

    with monkeypatch.context() as patch:
        patch.setattr(train.Batches, "set_epoch", kill)
        with pytest.raises(Kill):
            train.main([*command, "--out", str(sources / "killed")])
    gc.collect()  # closes the history now, not in a later test
    train.main([*command, "--out", str(sources / "killed")])
    killed = keras_gmlp.load_model(sources / "killed" / "model.keras", compile=False)
    for ours, theirs in zip(killed.get_weights(), whole.get_weights(), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)
    history = (sources / "killed" / "history.csv").read_text().splitlines()
    assert len(history) == 4
    losses = [float(row.split(",")[1]) for row in history[1:]]
    assert losses[-1] < losses[0]
    assert keras_gmlp.load(sources / "killed" / "model.keras").labels == ("a", "b")
    example("halve_weights").halve_weights(sources / "whole" / "model.keras")
    half = keras_gmlp.load_model(sources / "whole" / "model.keras", compile=False)
    images = np.random.default_rng(0).uniform(0, 255, (2, 16, 16, 3))
    ours, theirs = (keras.ops.convert_to_numpy(model(images)) for model in (half, whole))
    np.testing.assert_allclose(ours, theirs, atol=0.02)
