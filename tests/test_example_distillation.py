"""The example of distillation: the order of an epoch, and students from end to end."""

import gc
import importlib
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
from pictures import write_noise
from small_text import LABELS, LINES
from tiny_run import Kill, kill_after_an_epoch

import keras_gmlp
from keras_gmlp import text
from keras_gmlp.utils.card import write_text_card
from keras_gmlp.utils.files import read_json, write_json

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
    start = keras_gmlp.build("gmlp_n4_32", weights=sources / "killed", classes=3)
    np.testing.assert_array_equal(start.get_weights()[0], killed.get_weights()[0])
    example("halve_weights").halve_weights(sources / "whole" / "model.keras")
    half = keras_gmlp.load_model(sources / "whole" / "model.keras", compile=False)
    images = np.random.default_rng(0).uniform(0, 255, (2, 16, 16, 3))
    ours, theirs = (keras.ops.convert_to_numpy(model(images)) for model in (half, whole))
    np.testing.assert_allclose(ours, theirs, atol=0.02)


@pytest.fixture
def lessons(tmp_path, tokenizer):
    """A folder with texts and random labels, a language model, and a teacher.

    The teacher calls a text good that has the word "the".
    """
    draw, words = np.random.default_rng(0), " ".join(LINES).split()
    rows = [f"{' '.join(draw.choice(words, 6))}\t{draw.choice(LABELS)}" for _ in range(60)]
    (tmp_path / "texts.tsv").write_text("\n".join(["text\tlabel", *rows]))
    scores = np.zeros((tokenizer.size, 2), "float32")
    scores[tokenizer.cls_id, 0], scores[tokenizer.encode("the").ids[1], 1] = 3, 6
    ids = keras.Input((None,), dtype="int32", name="token_ids")
    table = keras.layers.Embedding(*scores.shape, name="token_embedding")
    teacher = keras.Model(ids, keras.ops.sum(table(ids), axis=1))
    teacher.set_weights([scores])
    sizes = {"dim": 16, "depth": 1, "hidden_dim": 32, "max_length": 32}
    start = text.gMLP(tokenizer.size, separator=tokenizer.sep_id, **sizes)
    for model, task, labels in (
        (teacher, "text_classification", LABELS),
        (start, "masked_lm", ()),
    ):
        path = tmp_path / f"{task}.keras"
        model.save(path)
        write_text_card(path, task, tokenizer, labels, {"length": 32})
    return tmp_path


def test_a_student_of_texts_learns_and_resumes_after_a_kill(example, lessons):
    teach, taught = example("teach_texts").main, lessons / "text_classification.keras"
    command = [lessons / "texts.tsv", "--teacher", taught, "--weights", lessons / "masked_lm.keras"]
    command += ["--sentences", 140, "--replaced", 0.2, "--length", 32, "--epochs", 8]
    command += ["--batch-size", 16, "--learning-rate", 0.02]

    def run(folder, *more):
        teach([*map(str, (*command, "--out", folder, *more))])

    run(lessons / "whole")
    whole, teacher = keras_gmlp.load(lessons / "whole"), keras_gmlp.load(taught)
    stored = read_json(lessons / "whole" / "sentences.json")
    assert len(stored["sentences"]) == 140
    assert not any("[MASK]" in sentence for sentence in stored["sentences"])
    given, learned = (
        np.array([answer[0]["index"] for answer in model.classify(stored["sentences"])])
        for model in (teacher, whole)
    )
    assert 0.2 < given.mean() < 0.8
    assert np.mean(given == learned) > 0.9

    answers, killed = np.load(lessons / "whole" / "answers.npy"), lessons / "killed"
    killed.mkdir()
    write_json(killed / "sentences.json", stored)
    answers[::3] = np.nan  # not yet computed
    np.save(killed / "answers.npy", answers)
    kill_after_an_epoch(run, killed)
    run(killed)
    weights = (keras_gmlp.load(lessons / name).model.get_weights() for name in ("whole", "killed"))
    for ours, theirs in zip(*weights, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
    with pytest.raises(SystemExit, match="another command"):
        run(killed, "--seed", 1)
