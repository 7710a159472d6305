"""Published weights as files: what is read, and what is refused in one line."""

import argparse
import json
import pickle

import numpy as np
import pytest
from refused import refused

from keras_gmlp.weights.files import (
    PretrainedConfig,
    read_checkpoint,
    short_name,
    write_checkpoint,
)

torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors.numpy")

ARRAYS = {"norm.weight": np.arange(3.0, dtype="float32"), "head.bias": np.ones(2, "float32")}


def same(path):
    """Whether a file holds the arrays and has no config."""
    found, config = read_checkpoint(path)
    assert set(found) == set(ARRAYS)
    for name, array in ARRAYS.items():
        assert found[name].dtype == np.float32
        np.testing.assert_array_equal(found[name], array)
    return config == PretrainedConfig()


def tensors(dtype=torch.float32):
    return {name: torch.from_numpy(array).to(dtype) for name, array in ARRAYS.items()}


def save(path, content):
    torch.save(content, path)
    return path


def fails(path, message, named=None):
    with refused(message, path if named is None else named):
        read_checkpoint(path)


def test_pytorch_files(tmp_path):
    plain = tensors()
    for content in (
        plain,
        tensors(torch.bfloat16),
        {"state_dict": {}, "state_dict_ema": plain, "args": argparse.Namespace(lr=0.1)},
        {"model_state_dict": {f"_orig_mod.module.{n}": plain[n] for n in plain}, "loss": 0.1},
    ):
        assert same(save(tmp_path / "model.pth", content))


def test_suffixes_and_short_names(tmp_path):
    for suffix in (".ckpt", ".pth.tar", ".PT", ".bin"):
        path = save(tmp_path / f"best{suffix}", tensors())
        assert short_name(path) == "best"
        assert same(path)
    for source, name in (
        ("hf://timm/gmlp_s16_224.ra3_in1k@refs/pr/1", "gmlp_s16_224.ra3_in1k"),
        ("runs/gmlp_n4_32-cifar10/", "gmlp_n4_32-cifar10"),
        ("downloads/resmlp/model.safetensors", "resmlp"),
        ("hub/models--a--b/snapshots/0123", "b"),  # the cache of the hub's client
    ):
        assert short_name(source) == name


class Trap:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_pickle_with_code_is_refused_and_not_run(tmp_path):
    trap = tmp_path / "sprung"
    content = {"head.bias": torch.ones(2), "trap": Trap(trap)}
    fails(save(tmp_path / "model.pth", content), "refused")
    (tmp_path / "plain.pth").write_bytes(pickle.dumps(Trap(trap), protocol=2))
    fails(tmp_path / "plain.pth", "refused")
    np.savez(tmp_path / "model.npz", trap=np.array([Trap(trap)], object))
    fails(tmp_path / "model.npz", "damaged or of another kind")
    assert not trap.exists()


def test_files_without_weights_or_with_more_than_they_show(tmp_path):
    fails(save(tmp_path / "model.pth", {"epoch": 3}), "expected a state dict")
    np.savez_compressed(tmp_path / "model.npz", zeros=np.zeros(1_000_000, "float32"))
    fails(tmp_path / "model.npz", "unpack to")


CFG = {"input_size": [3, 20, 30], "mean": [0.1, 0.2, 0.3], "crop_pct": 0.9}
CFG["interpolation"] = "bilinear"


def with_config(folder, config):
    """Writes weights with a config next to them, and returns the path of the weights."""
    safetensors.save_file(ARRAYS, folder / "model.safetensors")
    text = config if isinstance(config, str) else json.dumps(config)
    (folder / "config.json").write_text(text)
    return folder / "model.safetensors"


def read_config(folder, config):
    return read_checkpoint(with_config(folder, config))[1]


def test_config_is_read_in_both_forms(tmp_path):
    for config in (
        {"architecture": "a", "label_names": ["x", "y"], "pretrained_cfg": CFG},
        {"architecture": "a", "label_names": {"n1": "x", "n2": "y"}, **CFG},  # as older ones are
    ):
        assert read_config(tmp_path, config) == PretrainedConfig(
            "a",
            {"mean": (0.1, 0.2, 0.3), "input_shape": (20, 30, 3)},
            {"crop": 0.9, "interpolation": "bilinear"},
            ("x", "y"),
        )
    config = {"architecture": "a", "model_args": {"img_size": 48, "in_chans": 1}, **CFG}
    assert read_config(tmp_path, config).arguments["input_shape"] == (48, 48, 1)


def test_config_that_says_nonsense(tmp_path):
    for config, message in (
        ("{", "damaged or not JSON"),
        ({"pretrained_cfg": {"crop_mode": "squash"}}, "'squash'"),
    ):
        fails(with_config(tmp_path, config), message, tmp_path / "config.json")


def test_arguments_that_change_what_is_computed(tmp_path):
    relu = with_config(tmp_path, {"model_args": {"act_layer": "relu"}})
    fails(relu, "act_layer", tmp_path / "config.json")
    plain = {"act_layer": "gelu", "norm_layer": None, "drop_path_rate": 0.1, "depth": 12}
    found = read_config(tmp_path, {"global_pool": "token", "model_args": plain})
    assert found == PretrainedConfig(pool="token")
    arguments = {"global_pool": "avg", "num_heads": 6}
    found = read_config(tmp_path, {"global_pool": "token", "model_args": arguments})
    assert (found.pool, found.num_heads) == ("avg", 6)


def test_config_of_another_file_is_not_overwritten(tmp_path):
    write_checkpoint(tmp_path / "a.safetensors", ARRAYS, {"architecture": "a"})
    write_checkpoint(tmp_path / "a.safetensors", ARRAYS, {"architecture": "b"})  # its own is
    with pytest.raises(ValueError, match="exists and belongs to another file"):
        write_checkpoint(tmp_path / "b.safetensors", ARRAYS, {"architecture": "c"})
    assert read_checkpoint(tmp_path / "a.safetensors")[1].architecture == "b"
    assert not (tmp_path / "b.safetensors").exists()
