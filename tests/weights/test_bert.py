"""Original BERTs from Hugging Face's code with random weights; no download."""

import json

import numpy as np
import pytest
from check_layer import to_numpy

from keras_gmlp.runs.prepare import prepare
from keras_gmlp.runs.text import FineTuningSettings
from keras_gmlp.weights.bert import load_bert

SIZES = {
    "vocab_size": 60,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "max_position_embeddings": 12,
    "type_vocab_size": 2,
    "sep_token_id": 3,
}


@pytest.fixture(scope="module")
def published(timm, tmp_path_factory):  # the fixture makes torchvision importable
    transformers = pytest.importorskip("transformers")
    import torch

    torch.manual_seed(0)
    config = transformers.BertConfig(**SIZES, layer_norm_eps=1e-12, tie_word_embeddings=True)
    model = transformers.BertForMaskedLM(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # no weight at zero or one hides a fault
            parameter.normal_(0.0, 0.3)
    folder = tmp_path_factory.mktemp("bert")
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    (folder / "config.json").write_text(json.dumps(config.to_dict()))
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{i}" for i in range(55))]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")
    return folder, model


def test_logits_equal_those_of_hugging_face(published):
    import torch

    folder, reference = published
    model, tokenizer = load_bert(folder)
    texts = [("w1 [MASK] w9", "w4 w7"), ("w3 w3 [MASK] w8 w5 w6", None), ("w0", "w2 [MASK]")]
    encoded = [tokenizer.encode(a, b, length=11).ids for a, b in texts]
    ids = np.stack(encoded)
    segments = np.zeros_like(ids)
    for row, (_, second) in zip(range(3), texts, strict=True):
        ends = np.flatnonzero(ids[row] == 3)
        if second:
            segments[row, ends[0] + 1 : ends[1] + 1] = 1
    with torch.no_grad():
        expected = reference(
            torch.tensor(ids).long(),
            attention_mask=torch.tensor(ids != 0).long(),
            token_type_ids=torch.tensor(segments).long(),
        ).logits.numpy()
    places = np.argmax(ids == tokenizer.mask_id, axis=1)[:, None]
    logits = to_numpy(model({"token_ids": ids, "mask_positions": places}))
    for row in range(3):
        np.testing.assert_allclose(
            logits[row, 0], expected[row, places[row, 0]], rtol=1e-4, atol=1e-4
        )


def test_names_of_older_checkpoints(published, tmp_path):
    import torch

    folder, _ = published
    arrays = torch.load(folder / "pytorch_model.bin")
    old = {}
    for name, array in arrays.items():
        if "LayerNorm" in name:
            name = name.replace(".weight", ".gamma").replace(".bias", ".beta")
        old[name] = array
    torch.save(old, tmp_path / "pytorch_model.bin")
    (tmp_path / "config.json").write_text((folder / "config.json").read_text())
    model, tokenizer = load_bert(tmp_path)
    assert tokenizer is None
    for ours, theirs in zip(model.weights, load_bert(folder)[0].weights, strict=True):
        np.testing.assert_array_equal(to_numpy(ours), to_numpy(theirs))


def test_mistakes(published, tmp_path):
    folder, _ = published
    with pytest.raises(ValueError, match=r"no such folder; expected one with config.json"):
        load_bert(tmp_path / "nowhere")
    with pytest.raises(ValueError, match=r"has no model.safetensors or pytorch_model.bin"):
        load_bert(tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes((folder / "pytorch_model.bin").read_bytes())
    with pytest.raises(ValueError, match=r"has no config.json"):
        load_bert(tmp_path)
    config = json.loads((folder / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "hidden_act": "relu"}))
    with pytest.raises(ValueError, match=r"hidden_act must be 'gelu'; received 'relu'"):
        load_bert(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ValueError, match=r"not the config.json of a BERT"):
        load_bert(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 3}))
    with pytest.raises(ValueError, match=r"lacks encoder.layer.2.attention.self.query.weight and"):
        load_bert(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({**config, "vocab_size": 61}))
    with pytest.raises(ValueError, match=r"does not fit token_embedding/embeddings \(61, 16\)"):
        load_bert(tmp_path)


def test_fine_tuning_requires_a_vocabulary(published, tmp_path):
    (tmp_path / "config.json").write_bytes((published[0] / "config.json").read_bytes())
    (tmp_path / "pytorch_model.bin").write_bytes((published[0] / "pytorch_model.bin").read_bytes())
    with pytest.raises(ValueError, match=r"has no tokenizer; expected tokenizer\.json"):
        prepare(FineTuningSettings(str(tmp_path), "texts.csv"))
