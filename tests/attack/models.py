"""Mutated model files and files of published weights."""

import json
import zipfile

import keras
import numpy as np
import torch
from load_app import ROOT, load_app
from safetensors.numpy import save_file

import keras_gmlp
from attack.kinds import SilentLossError
from attack.mutations import mutate, mutate_json
from keras_gmlp.inference import images as inference
from keras_gmlp.utils.card import CARD, LABELS, write_card
from keras_gmlp.weights.files import read_checkpoint

TFLITE = ROOT / "saved_models" / "gmlp_n4_32-cifar10" / "model.tflite"

CHECKED = (".tflite", ".keras", ".npz")  # a digest or a checksum protects their numbers

BOMB = 300_000_000  # bytes that a member of an archive inflates to


class Models:
    """Each case is a damaged model or file of weights; zip archives also get odd members."""

    def __init__(self, folder):
        keras.utils.set_random_seed(0)
        model = keras_gmlp.gMLP(8, 1, hidden_dim=16, patch_size=4, classes=3, input_shape=(8, 8, 3))
        model.save(folder / "model.keras")
        write_card(folder / "model.keras", model, ["a", "b", "c"])
        write_tflite(folder / "model.tflite")
        arrays = {f"w{i}": np.full((i + 1, 5), i, "float32") for i in range(4)}
        np.savez(folder / "model.npz", **arrays)
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        torch.save(tensors, folder / "model.pth")
        save_file(arrays, folder / "model.safetensors")
        write_onnx(folder / "model.onnx")
        self.files = sorted(folder.glob("model.*"))
        self.results = {path.suffix: read(path) for path in self.files}

    def make(self, rng, folder):
        source = rng.choice(self.files)
        path = folder / source.name
        odd = zipfile.is_zipfile(source) and source.suffix != ".tflite" and rng.random() < 0.3
        if odd:
            write_odd_members(source, path, rng)
        elif source.suffix == ".tflite" and rng.random() < 0.01:  # slow: in another child process
            path.write_bytes(mutate(read_flatbuffer(source), rng))
            odd = True
        else:
            path.write_bytes(mutate(source.read_bytes(), rng))
        return path, odd

    def check(self, case):
        path, odd = case
        result, expected = read(path), self.results[path.suffix]
        if path.suffix in CHECKED and not odd and not same(result, expected):
            raise SilentLossError(f"{path.name} gives other numbers, without an error.")


def read(path):
    """Returns the arrays in a file of weights, or the logits of a model."""
    if path.suffix in (".npz", ".pth", ".safetensors"):
        return read_checkpoint(path)[0]
    with load_app("cli").quiet():  # as apps/classify.py loads it
        classifier = inference.load(path)
    return {"logits": classifier.logits(np.full((1, *classifier.image_shape), 100.0, "float32"))}


def same(result, expected):
    """Returns whether the arrays that two dicts share are equal."""
    return all(np.array_equal(result[name], expected[name]) for name in result.keys() & expected)


def read_flatbuffer(path):
    """Returns the bytes of a `.tflite` file without its card."""
    with zipfile.ZipFile(path) as archive:
        return path.read_bytes()[: min(m.header_offset for m in archive.infolist())]


def write_members(path, flatbuffer, members):
    """Writes a `.tflite` file with members; returns its path."""
    path.write_bytes(flatbuffer)
    with zipfile.ZipFile(path, "a") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def require_answers(answers):
    """Requires labels with probabilities."""
    for label, probability in answers:
        assert isinstance(label, str)
        assert 0 <= probability <= 1


def write_tflite(path):
    """Writes a `.tflite` file whose card has a digest."""
    path.write_bytes(read_flatbuffer(TFLITE))
    model = keras.Sequential([keras.Input((32, 32, 3)), keras.layers.Flatten()])
    write_card(path, model, [str(i) for i in range(10)])


def write_onnx(path):
    """Writes a linear classifier."""
    from onnx import TensorProto, checker, helper

    weights = helper.make_tensor("w", TensorProto.FLOAT, (48, 3), np.arange(144) / 144)
    nodes = [
        helper.make_node("Flatten", ["image"], ["flat"]),
        helper.make_node("MatMul", ["flat", "w"], ["logits"]),
    ]
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ("batch", 4, 4, 3))
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ("batch", 3))
    graph = helper.make_graph(nodes, "linear", [image], [logits], [weights])
    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=8)
    helper.set_model_props(model, {CARD: "{}", LABELS: "a\nb\nc\n"})
    checker.check_model(model)
    path.write_bytes(model.SerializeToString())


def write_odd_members(source, path, rng):
    """Copies a zip archive with one member changed, missing, doubled or far larger."""
    with zipfile.ZipFile(source) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    chosen = rng.choice(list(members))
    content, method = members[chosen], zipfile.ZIP_STORED
    change = rng.randrange(5)
    if change == 0:
        del members[chosen]
    elif change == 1:
        members[chosen], method = bytes(rng.choice((1000, BOMB))), zipfile.ZIP_DEFLATED
    elif change == 2:
        members[rng.choice(("../x", "/tmp/x", "a\nb", chosen + "/x"))] = content
    elif chosen.endswith(".json"):
        members[chosen] = json.dumps(mutate_json(json.loads(content), rng)).encode()
    else:
        members[chosen] = mutate(content, rng)
    with zipfile.ZipFile(path, "w", method, compresslevel=1) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
