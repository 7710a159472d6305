"""TFLite files of text models against the Keras models."""

import dataclasses
import json

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter
from check_layer import to_numpy
from refused import refused
from small_text import LABELS, LENGTH, LINES, small_text_model

from keras_gmlp.data.text.labelled_texts import TextSource
from keras_gmlp.data.text.tokenizer import Tokenizer
from keras_gmlp.export.verify import check_export, export_run
from keras_gmlp.export.writing import export
from keras_gmlp.inference.text import from_keras
from keras_gmlp.tasks.masked_lm import MASKS
from keras_gmlp.tasks.text_classification import TextClassification
from keras_gmlp.utils.card import read_card, read_tokenizer, write_text_card
from keras_gmlp.utils.formats import FORMATS, TEXT_FORMATS
from keras_gmlp.weights.loading import load

# Largest logit difference; the logits' own spread is about 10.
TOLERANCE = {"tflite_float32": 1e-3, "tflite_float16": 0.05, "tflite": 0.5, "features": 0.5}
TOLERANCE["saved_model"] = 1e-3
WRITTEN = [name for name in TEXT_FORMATS if name != "onnx"]  # test_formats.py has it, on PyTorch


@pytest.fixture(scope="module")
def run(tokenizer, tmp_path_factory):
    """The folder of a run that trained a language model, and what its export measured."""
    folder = tmp_path_factory.mktemp("run")
    small_text_model("masked_lm", tokenizer).save(folder / "model.keras")
    card = {"length": LENGTH, "preset": "gmlp_nano"}
    write_text_card(folder / "model.keras", "masked_lm", tokenizer, (), card)
    (folder / "metrics.json").write_text('{"test_perplexity": 9.0}')
    return folder, export_run(folder, WRITTEN, data=(LINES * 2, None))


def test_language_model_in_all_precisions(run, tokenizer):
    folder, results = run
    for name, found in results.items():
        assert found["max_logit_difference"] <= TOLERANCE[name], name
        assert found["top1_agreement"] >= (0.8 if name in ("tflite", "features") else 1)
        assert name == "saved_model" or found["latency_ms"] > 0
        path = folder / FORMATS[name].path
        card = read_card(path)
        assert (card["task"], card["length"], card["preset"]) == ("masked_lm", LENGTH, "gmlp_nano")
        assert read_tokenizer(path) == tokenizer.text
        assert "accuracy" not in found
    sizes = [results[name]["megabytes"] for name in ("tflite_float16", "tflite_float32")]
    assert sizes[0] < sizes[1]
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics == {"test_perplexity": 9.0, "exports": results}


def test_features_are_a_second_signature(run):
    path = run[0] / FORMATS["features"].path
    assert read_card(path)["features"] == 8
    assert Interpreter(str(path)).get_signature_list() == {
        "serving_default": {"inputs": ["mask_positions", "token_ids"], "outputs": ["logits"]},
        "serving_features": {"inputs": ["token_ids"], "outputs": ["features"]},
    }


def test_gates_are_one_matrix_without_sums_over_offsets(run):
    interpreter = Interpreter(str(run[0] / "model_float32.tflite"))
    operators = [operator["op_name"] for operator in interpreter._get_ops_details()]
    assert not {"TILE", "CONCATENATION", "BATCH_MATMUL"} & set(operators)
    shapes = {tuple(tensor["shape"]) for tensor in interpreter.get_tensor_details()}
    assert (LENGTH, LENGTH) in shapes
    assert not any(2 * LENGTH - 1 in shape for shape in shapes)
    inputs = {t["name"].split(":")[0]: t for t in interpreter.get_input_details()}
    assert {tuple(t["shape"]) for t in inputs.values()} == {(1, LENGTH), (1, MASKS)}
    assert {t["dtype"] for t in inputs.values()} == {np.int32}


def test_classifier(tokenizer, tmp_path):
    model = small_text_model("text_classification", tokenizer)
    texts = {"tokenizer": tokenizer, "length": 16}
    paths = export(model, tmp_path, ["tflite", "saved_model"], LABELS, {"pairs": False}, **texts)
    for name, path in paths.items():
        opened = load(path)
        assert (opened.length, opened.labels, opened.pairs) == (16, LABELS, False)
        inputs = TextClassification.encode(opened, LINES)
        expected = to_numpy(model(inputs["token_ids"]))
        found = check_export(path, inputs, expected, expected.argmax(-1))
        assert found["max_logit_difference"] <= TOLERANCE[name]
        assert found["accuracy"] == found["top1_agreement"] == 1


def test_texts_for_the_checks(tokenizer, tmp_path):
    file = tmp_path / "films.csv"
    rows = (f"a gem {number},good\na bore {number},bad\n" for number in range(9))
    file.write_text("text,label\n" + "".join(rows))
    source = from_keras(small_text_model("text_classification", tokenizer), tokenizer, LABELS)
    load_texts = TextClassification.check_samples
    texts, truth = load_texts(source, TextSource(str(file)))
    assert [LABELS[i] for i in truth] == ["good" if "gem" in text else "bad" for text in texts]
    with pytest.raises(ValueError, match="0, 1"):
        load_texts(dataclasses.replace(source, labels=("0", "1")), TextSource(str(file)))


def test_program(run, tmp_path, app):
    (tmp_path / "lines.txt").write_text("\n".join(LINES))
    (tmp_path / "model.keras").write_bytes((run[0] / "model.keras").read_bytes())
    code, _, error = app("export", tmp_path, "--formats", "tflite_float32")
    assert (code, "--data FILE" in error) == (1, True)
    given = ["--formats", "tflite_float32", "--data", tmp_path / "lines.txt", "--json"]
    code, out, _ = app("export", tmp_path, *given)
    assert (code, json.loads(out)["tflite_float32"]["top1_agreement"]) == (0, 1)


def test_mistakes(tokenizer, tmp_path):
    model = small_text_model("text_classification", tokenizer)
    for change, reason in (
        ({"formats": ["mediapipe"]}, "mediapipe"),
        ({"labels": ["a"]}, "1 class names"),
        ({"length": LENGTH + 1}, f"at most {LENGTH} tokens"),
        ({"tokenizer": Tokenizer.train(["other words"], vocabulary_size=128)}, "tokenizer"),
    ):
        arguments = {"tokenizer": tokenizer, "length": LENGTH, "labels": LABELS, **change}
        with refused(reason):
            export(model, tmp_path, **arguments)
        assert not list(tmp_path.glob("*.tflite"))
