"""Folders of transformers: each class with random weights, in and out; other models as well."""

import dataclasses
import json
import random
import shutil

import keras
import numpy as np
import pytest
from check_layer import to_numpy
from refused import refused

from keras_gmlp.inference import text as text_inference
from keras_gmlp.models.language_families import BERT, gMLP
from keras_gmlp.models.language_model import encoder
from keras_gmlp.programs import convert
from keras_gmlp.runs.prepare import prepare
from keras_gmlp.runs.run import train_run
from keras_gmlp.runs.settings import RunSettings
from keras_gmlp.tasks.confidence import Confidence
from keras_gmlp.weights.bert import load_bert
from keras_gmlp.weights.loading import load
from keras_gmlp.weights.text_folder import (
    open_text_model,
    save_text_model,
    write_text_folder,
)

CLASSES = ("BertModel", "BertForMaskedLM", "BertForPreTraining")
CLASSES += ("BertForSequenceClassification",)
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", ",", "!", "'"]
WORDS += sorted({*"abcdefgh", "##a", "##b", "##ed", "the", "bad", "cafe", "café", "head", "##ded"})
LABELS = {0: "bad", 1: "good", 2: "neutral"}


@pytest.fixture(scope="module")
def transformers(timm):  # the fixture makes torchvision importable
    return pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def publish(transformers, tmp_path_factory):
    """Returns a function that makes a folder and its model with random weights, once each."""
    import torch

    made = {}

    def build(name, lowercase=True):
        if (name, lowercase) in made:
            return made[name, lowercase]
        torch.manual_seed(0)
        config = transformers.BertConfig(
            vocab_size=len(WORDS),
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=24,
            max_position_embeddings=24,
            **({"id2label": LABELS} if "Sequence" in name else {}),
        )
        model = getattr(transformers, name)(config).eval()
        with torch.no_grad():
            for parameter in model.parameters():  # no weight at zero or one hides a fault
                parameter.normal_(0.0, 0.3)
        folder = tmp_path_factory.mktemp(name)
        (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n")
        tokenizer = transformers.BertTokenizer(
            vocab=str(folder / "vocab.txt"), do_lower_case=lowercase
        )
        (folder / "vocab.txt").unlink()  # as today's transformers leaves a folder
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        assert (folder / "tokenizer.json").exists()
        return made.setdefault((name, lowercase), (folder, model))

    return build


@pytest.fixture
def tokenizer(publish):
    return open_text_model(publish("BertForMaskedLM")[0]).tokenizer


def ids_and_segments():
    """Returns ids of one text, and of a pair with padding, and the segments that belong to them."""
    ids = np.array([[2, 9, 14, 4, 11, 17, 20, 3], [2, 9, 3, 12, 4, 3, 0, 0]])
    return ids, np.array([[0] * 8, [0, 0, 0, 1, 1, 1, 0, 0]])


def run_reference(model):
    import torch

    ids, segments = ids_and_segments()
    with torch.no_grad():
        found = model(
            torch.tensor(ids),
            attention_mask=torch.tensor(ids != 0).long(),
            token_type_ids=torch.tensor(segments),
        )
    first = getattr(found, "prediction_logits", None)
    return (found[0] if first is None else first).numpy()


def assert_equal_logits(model, expected):
    ids, _ = ids_and_segments()
    places = np.tile(np.arange(ids.shape[1]), (2, 1))
    is_language_model = len(model.inputs) == 2
    inputs = {"token_ids": ids, "mask_positions": places} if is_language_model else ids
    found = to_numpy(model(inputs))
    kept = np.ones(expected.shape, bool)
    if expected.ndim == 3:
        kept = np.broadcast_to(ids[..., None] != 0, expected.shape)
    np.testing.assert_allclose(found[kept], expected[kept], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", CLASSES)
def test_each_class_in_and_out(publish, transformers, tmp_path, name):
    folder, reference = publish(name)
    expected = run_reference(reference)
    model, tokenizer = load_bert(folder)
    assert tokenizer.size == len(WORDS)
    assert_equal_logits(model, expected)
    if name == "BertModel":
        with refused("load_bert"):
            open_text_model(folder)
        return
    opened = open_text_model(folder)
    if opened.labels:
        assert opened.labels == ("bad", "good", "neutral")
    written = write_text_folder(opened, tmp_path / "back" / "model.safetensors")
    assert written == name.replace("PreTraining", "MaskedLM")
    again = getattr(transformers, written).from_pretrained(tmp_path / "back").eval()
    theirs = reference.state_dict()
    for key, tensor in again.state_dict().items():
        np.testing.assert_array_equal(tensor.numpy(), theirs[key].numpy(), err_msg=key)
    if opened.labels:
        assert again.config.id2label == LABELS


@pytest.mark.parametrize("lowercase", [True, False])
def test_tokens_equal_on_1000_lines(publish, transformers, tmp_path, lowercase):
    folder, _ = publish("BertForMaskedLM", lowercase=lowercase)
    opened = open_text_model(folder)
    write_text_folder(opened, tmp_path / "back" / "model.safetensors")
    draw = random.Random(0)
    parts = [*WORDS[9:], "Café", "CAFÉ", "the bad", "abed", "ab", "日本", "é", "zzz", "  ", "a.b,c"]
    lines = [" ".join(draw.choices(parts, k=draw.randint(1, 9))) for _ in range(1000)]
    ours = [encoding.ids for encoding in opened.tokenizer.encode_batch(lines)]
    assert len({tuple(row) for row in ours}) > 800
    for place in (folder, tmp_path / "back"):
        theirs = transformers.AutoTokenizer.from_pretrained(place)(lines)["input_ids"]
        assert ours == theirs
    pair = transformers.AutoTokenizer.from_pretrained(tmp_path / "back")("the bad", "head")
    assert pair["input_ids"] == opened.tokenizer.encode("the bad", "head").ids
    assert pair["token_type_ids"] == [0, 0, 0, 0, 1, 1]


@pytest.mark.parametrize("name", ["BertModel", "BertForMaskedLM"])
def test_fine_tuning_starts_from_each_class(publish, tmp_path, name):
    words = WORDS[9:]
    rows = (f"{words[i % 13]} {words[i % 7]},{'odd' if i % 2 else 'even'}" for i in range(40))
    (tmp_path / "texts.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    settings = RunSettings(
        weights=str(publish(name)[0]), task=str(tmp_path / "texts.csv"), batch_size=8, epochs=1,
        precision="float32", set={"length": 12}, out=str(tmp_path / "run"),
    )  # fmt: skip
    run, (model, tokenizer) = prepare(settings), load_bert(publish(name)[0])
    ids, parts = np.array([[2, 9, 7, 3, 0]]), (model, run.model)
    start, found = (to_numpy(keras.Model(*encoder(part))(ids)) for part in parts)
    np.testing.assert_allclose(found, start, atol=1e-5)
    if name != "BertForMaskedLM":  # the others train alike
        return
    assert train_run(settings, verbose=0)["test_accuracy"] >= 0
    opened = load(tmp_path / "run")
    assert opened.tokenizer.hash == tokenizer.hash
    assert {row["label"] for row in opened.classify("the head")} == {"odd", "even"}


def test_files_of_others_stay(publish, tmp_path):
    opened = open_text_model(publish("BertForMaskedLM")[0])
    (tmp_path / "vocab.txt").write_text("mine")
    with refused("exists"):
        write_text_folder(opened, tmp_path / "model.safetensors")
    assert [path.name for path in tmp_path.iterdir()] == ["vocab.txt"]
    assert (tmp_path / "vocab.txt").read_text() == "mine"


def test_names_of_older_checkpoints_and_a_vocabulary(publish, tmp_path):
    """A folder with pytorch_model.bin and vocab.txt, as years ago."""
    import torch

    folder, reference = publish("BertForMaskedLM")
    old = reference.state_dict()
    for name in [name for name in old if "LayerNorm" in name]:
        renamed = name.replace(".weight", ".gamma").replace(".bias", ".beta")
        old[renamed] = old.pop(name)
    torch.save(dict(old), tmp_path / "pytorch_model.bin")
    (tmp_path / "config.json").write_bytes((folder / "config.json").read_bytes())
    with refused(r"has no tokenizer\.json"):
        load_bert(tmp_path)
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    model, _ = load_bert(tmp_path)
    for ours, theirs in zip(model.weights, load_bert(folder)[0].weights, strict=True):
        np.testing.assert_array_equal(to_numpy(ours), to_numpy(theirs))
    for strip, word in ((None, "cafe"), (False, "café")):
        steps = {"do_lower_case": True, **({} if strip is None else {"strip_accents": strip})}
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(steps))
        _, tokenizer = load_bert(tmp_path)
        assert [tokenizer.tokens[i] for i in tokenizer.encode("Café").ids[1:-1]] == [word]


def test_only_an_original_bert_becomes_a_folder(tokenizer, tmp_path):
    for model in (BERT(tokenizer.size, 16, 2, 2, max_length=16), gMLP(tokenizer.size, 16, 1, 32)):
        opened = text_inference.from_keras(model, tokenizer)
        with refused("not an original BERT"):
            write_text_folder(opened, tmp_path / "own" / "model.safetensors")
    assert not (tmp_path / "own").exists()


def test_a_bert_of_ours_without_segments(tokenizer, transformers, tmp_path):
    model = BERT(
        tokenizer.size, 16, 2, 2, relative=False, norm_placement="post", epsilon=1e-12,
        max_length=24,
    )  # fmt: skip
    opened = text_inference.from_keras(model, tokenizer)
    assert write_text_folder(opened, tmp_path / "model.safetensors") == "BertForMaskedLM"
    reference = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path).eval()
    assert_equal_logits(model, run_reference(reference))


def test_program_converts_both_ways_and_keeps_what_was_calibrated(publish, tmp_path, capsys):
    folder, ours = str(publish("BertForSequenceClassification")[0]), tmp_path / "ours"
    assert convert.main([folder, "--out", str(ours)]) == 0
    assert "texts of up to 24 tokens, 3 classes" in capsys.readouterr().out
    calibrated = dataclasses.replace(load(ours), confidence=Confidence(2.5))
    saved = save_text_model(calibrated, tmp_path / "calibrated" / "model.keras")
    assert load(saved).confidence == Confidence(2.5)
    back = str(tmp_path / "back" / "model.safetensors")
    assert convert.main([str(saved), "--out", back, "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["opens"] == "BertForSequenceClassification"
    assert "its probabilities are not calibrated" in printed.err
    assert convert.main([folder, "--out", str(tmp_path / "x"), "--image-size", "32"]) == 1


def test_other_models_are_refused_by_name(publish, tmp_path):
    source = publish("BertForSequenceClassification")[0]
    folder = shutil.copytree(source, tmp_path / "other")
    config = json.loads((folder / "config.json").read_text())
    for changes, words in (
        ({"model_type": "roberta"}, "'roberta'"),
        ({"architectures": ["BertForTokenClassification"]}, "BertForTokenClassification"),
        ({"problem_type": "multi_label_classification"}, "problem_type"),
        ({"hidden_act": "relu"}, "'relu'"),
        ({"num_hidden_layers": 3}, r"has no encoder\.layer\.2"),
    ):
        (folder / "config.json").write_text(json.dumps({**config, **changes}))
        with refused(words):
            load_bert(folder)
