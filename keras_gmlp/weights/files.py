"""Reads published weights, from a path or a hub name, and writes them."""

import argparse
import dataclasses
import os
import pickle
import re
import warnings
import zipfile
from pathlib import Path

import numpy as np

from keras_gmlp.data.images.read_image import check_preparation
from keras_gmlp.utils.environment import require
from keras_gmlp.utils.errors import is_out_of_memory, shortened
from keras_gmlp.utils.files import atomic_write, read_json, require_bounded, write_json
from keras_gmlp.utils.labels import check_labels
from keras_gmlp.utils.sources import HUBS, WEIGHTS, find_suffix

# Entries of training scripts that hold the weights; the first one that exists counts.
_HOLDERS = (
    "state_dict_ema", "model_ema", "ema_state_dict", "state_dict", "model_state_dict",
    "model_state", "model", "net", "module", "weights",
)  # fmt: skip

# What torch.compile and training on several devices put before a name.
_WRAPPER = re.compile(r"^(?:_orig_mod\.|module\.)+")

# Arguments of timm's models that the weights tell as well, that another line reads, or that matter
# in training only. Others may compute something else from the same weights.
_KNOWN_ARGUMENTS = {
    "img_size", "in_chans", "num_classes", "global_pool", "num_heads", "patch_size", "embed_dim",
    "depth", "num_blocks", "mlp_ratio", "class_token", "qkv_bias", "qk_norm", "init_values",
    "strict_img_size", "dynamic_img_size", "weight_init", "drop_rate", "pos_drop_rate",
    "patch_drop_rate", "proj_drop_rate", "attn_drop_rate", "drop_path_rate",
}  # fmt: skip

EXPANSION = 10  # of a compressed .npz file; weights shrink to a half at best


@dataclasses.dataclass(frozen=True)
class PretrainedConfig:
    """The settings in a publisher's config.json; `None` for those that it does not name."""

    architecture: str | None = None  # its name in timm
    arguments: dict = dataclasses.field(default_factory=dict)  # of the model
    preparation: dict = dataclasses.field(default_factory=dict)  # of images, as in `read_image`
    labels: tuple[str, ...] | None = None
    pool: str | None = None  # what the head reads, "token" or "avg"
    num_heads: int | None = None


def read_checkpoint(source):
    """Reads published weights; returns float32 arrays by name, and a `PretrainedConfig`."""
    path = Path(source).expanduser()
    path = path / WEIGHTS if path.is_dir() else path
    return _read(path, str(source)), _read_config(path.with_name("config.json"))


def _read_config(path):
    """Reads timm's config.json; older ones have no `pretrained_cfg` and hold all at the top."""
    if not path.is_file():
        return PretrainedConfig()
    config = read_json(path)
    try:
        values = {**config, **(config.get("pretrained_cfg") or {})}
        arguments = config.get("model_args") or {}
        set_ones = {name for name, value in arguments.items() if value not in (None, "gelu")}
        if others := sorted(set_ones - _KNOWN_ARGUMENTS):
            raise ValueError(f"model_args {', '.join(others)} may change what the model computes")
        if arguments.get("img_size"):  # overrides the size of the architecture
            channels, *_ = values.get("input_size") or (3,)
            size = arguments["img_size"]
            sides = list(size) if isinstance(size, list) else [size, size]
            values["input_size"] = [arguments.get("in_chans", channels), *sides]
        mode = values.get("crop_mode", "center")
        if mode != "center":
            raise ValueError(f"crop_mode must be 'center'; received {mode!r}")
        moments = {name: values[name] for name in ("mean", "std") if values.get(name)}
        found = {name: tuple(map(float, numbers)) for name, numbers in moments.items()}
        if values.get("input_size"):
            channels, height, width = map(int, values["input_size"])
            found["input_shape"] = height, width, channels
        preparation = {"crop": values.get("crop_pct"), "interpolation": values.get("interpolation")}
        preparation = {name: value for name, value in preparation.items() if value is not None}
        check_preparation(**preparation)
        labels = values.get("label_names") or ()
        labels = tuple(map(str, labels.values() if isinstance(labels, dict) else labels))
        check_labels(labels, "label_names")
        architecture = config.get("architecture")
        return PretrainedConfig(
            architecture=architecture if architecture is None else str(architecture),
            arguments=found,
            preparation=preparation,
            labels=labels or None,
            pool=arguments.get("global_pool", config.get("global_pool")),
            num_heads=arguments.get("num_heads"),
        )
    except (ValueError, TypeError, AttributeError, OverflowError) as error:
        reason = str(error).removesuffix(".")
        raise ValueError(f"{path}: not a config.json of timm ({reason}).") from None


def short_name(source):
    """Returns a short name for a source, from its file, its folder or the hub name."""
    if str(source).startswith(HUBS):
        return str(source).partition("@")[0].rstrip("/").rpartition("/")[2]
    path = Path(source)
    suffix = find_suffix(path) or ".keras"
    if path.name.lower().endswith(suffix):
        stem = path.name[: -len(suffix)]
        if stem != "model":
            return stem
        path = path.parent
    path = Path(os.path.realpath(path))
    cached = path.parent.parent.name  # models--OWNER--NAME/snapshots/COMMIT in a hub's cache
    return cached.rpartition("--")[2] if cached.startswith("models--") else path.name


def write_checkpoint(path, arrays, config):
    """Writes arrays as a `.safetensors` file, and a config as config.json next to it."""
    path = Path(path)
    config_path = path.with_name("config.json")
    if config_path.exists() and not path.exists():
        raise ValueError(
            f"{path}: {config_path} exists and belongs to another file; choose another folder."
        )
    require("safetensors", f"{path}: a file of weights", "convert")
    from safetensors.numpy import save

    with atomic_write(path) as temporary:
        temporary.write_bytes(save(arrays))
    write_json(config_path, config)


def find_file(folder, *files):
    """Returns the path of the first of some files that a folder has."""
    if found := [folder / file for file in files if (folder / file).is_file()]:
        return found[0]
    raise ValueError(f"{folder}: has no {' or '.join(files)}.")


def _read(path, source):
    """Reads the state dict of a file, float32 arrays by name."""
    suffix = find_suffix(path)
    try:
        return _unwrapped(_load(path, suffix))
    except ImportError as error:
        extra = "convert" if suffix == ".safetensors" else "torch"
        raise ValueError(f"{source}: {error}; install it: pip install -e '.[{extra}]'") from None
    except pickle.UnpicklingError:  # of more than weights, or of no pickle
        raise ValueError(
            f"{source}: refused, since it is damaged or could run code when read. Ask for a "
            ".safetensors file."
        ) from None
    except Exception as error:  # each reader's errors for a damaged file differ
        if is_out_of_memory(error):
            raise MemoryError(f"{source}: not enough memory to read it.") from None
        reason = shortened(str(error), 160)
        raise ValueError(f"{source}: damaged or of another kind ({reason}).") from None


def _load(path, suffix):
    """Loads the content of a file without running code in it."""
    if suffix == ".safetensors":
        from safetensors.numpy import load_file

        return load_file(path)
    if suffix == ".npz":
        require_bounded(path, EXPANSION)
        # Opened here, since NumPy leaves a damaged file open.
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as arrays:
            return dict(arrays)
    import torch

    if zipfile.is_zipfile(path):  # older files are not
        require_bounded(path)
    # The training scripts of timm and DeiT save their arguments next to the weights.
    safe = torch.serialization.safe_globals([argparse.Namespace])
    with safe, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of an odd pickle, which loads all the same or raises
        return torch.load(path, map_location="cpu", weights_only=True)


def _unwrapped(arrays):
    """Returns the state dict inside the checkpoint of a training script, as float32 arrays."""
    for key in _HOLDERS:
        if isinstance(arrays.get(key), dict):
            arrays = arrays[key]
            break
    result = {}
    for name, array in arrays.items():
        if not hasattr(array, "shape") or not isinstance(name, str):
            raise ValueError(f"expected a state dict; {name} is not an array of weights")
        if hasattr(array, "detach"):
            array = array.detach().float().numpy()
        result[_WRAPPER.sub("", name)] = np.asarray(array, "float32")
    return result
