"""Published weights as files: from a path or a hub name to arrays by their names."""

import dataclasses
import json
import pickle
from pathlib import Path

import numpy as np

from keras_gmlp.files import replacing, write_json

HUB = "hf-hub:"
SUFFIXES = (".safetensors", ".pth", ".pt", ".npz", ".bin")


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """Arrays by their names, and what the publisher says about them.

    Attributes:
        arrays: float32 arrays.
        config: of the hub's config.json, or empty: `architecture`, `pretrained_cfg`, `label_names`.
        origin: path or hub name.
    """

    arrays: dict
    config: dict
    origin: str


def read_checkpoint(source):
    """Reads published weights.

    Args:
        source: path of a `.safetensors`, `.pth`, `.pt` or `.npz` file, or a name on the Hugging
            Face hub, `hf-hub:timm/gmlp_s16_224.ra3_in1k`, with `@` and a revision if need be. A
            config.json beside a file is read too.

    Returns:
        A `Checkpoint`.

    Raises:
        ValueError: no such file or name, or a file that is damaged, of another kind, or holds
            anything but weights. One line.
    """
    source = str(source)
    if source.startswith(HUB):
        path, config = _from_hub(source)
    else:
        path = Path(source).expanduser()
        if not path.is_file():
            raise ValueError(
                f"{source}: no such file; expected {', '.join(SUFFIXES)} or {HUB}NAME."
            )
        config = path.with_name("config.json")
    arrays = _read(path, source)
    try:
        described = json.loads(Path(config).read_text()) if Path(config).exists() else {}
    except ValueError as error:
        raise ValueError(f"{config}: damaged, no JSON ({error}).") from None
    return Checkpoint(_unwrapped(arrays, source), described, source)


def write_checkpoint(path, arrays, config):
    """Writes arrays as a `.safetensors` file, and what describes them as config.json beside it.

    Raises:
        ValueError: safetensors is not installed.
    """
    try:
        from safetensors.numpy import save
    except ImportError as error:
        raise ValueError(f"{path}: {error}; install it: pip install -e '.[convert]'") from None
    with replacing(path) as temporary:
        temporary.write_bytes(save(arrays))
    write_json(Path(path).with_name("config.json"), config)


def _from_hub(source):
    """Paths of the weights and the config in the hub's cache, downloaded if need be."""
    try:
        from huggingface_hub import hf_hub_download
    except ImportError:
        raise ValueError(
            f"{source}: names on the hub need huggingface_hub; install it: "
            "pip install -e '.[convert]'"
        ) from None
    name, _, revision = source.removeprefix(HUB).partition("@")
    paths = []
    for file in ("model.safetensors", "config.json"):
        try:
            paths.append(hf_hub_download(name, file, revision=revision or None))
        except Exception as error:  # of the network, the name, the revision, the disk: many kinds
            reason = " ".join(str(error).split())[:160]
            raise ValueError(
                f"{source}: {file} is not in the cache and could not be downloaded; check the name "
                f"and the connection, or give a file ({reason})."
            ) from None
    return Path(paths[0]), Path(paths[1])


def _read(path, source):
    try:
        if path.suffix == ".safetensors":
            from safetensors.numpy import load_file

            return load_file(path)
        if path.suffix in (".pth", ".pt", ".bin"):
            return _read_pickle(path)
        if path.suffix == ".npz":
            # Opened here, since NumPy leaves a damaged file open.
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as arrays:
                return dict(arrays)
    except ImportError as error:
        raise ValueError(f"{source}: {error}; install it: pip install -e '.[convert]'") from None
    except pickle.UnpicklingError as error:
        if "Unsupported global" not in str(error):
            raise ValueError(f"{source}: damaged, or no file of PyTorch's weights.") from None
        raise ValueError(
            f"{source}: holds more than weights, which could run code when it is read; refused. "
            "Ask for a .safetensors file."
        ) from None
    except Exception as error:  # each reader raises errors of its own for a damaged file
        reason = " ".join(str(error).split())[:160]
        raise ValueError(f"{source}: damaged or of another kind ({reason}).") from None
    raise ValueError(f"{source}: unknown kind of file; expected one of {', '.join(SUFFIXES)}.")


def _read_pickle(path):
    import torch

    return torch.load(path, map_location="cpu", weights_only=True)


def _unwrapped(arrays, source):
    """The state dict alone, where a training script has wrapped it, as float32 arrays."""
    if not isinstance(arrays, dict):
        raise ValueError(f"{source}: holds a {type(arrays).__name__} and no state dict.")
    for key in ("state_dict_ema", "model_ema", "state_dict", "model"):
        if isinstance(arrays.get(key), dict):
            arrays = arrays[key]
            break
    found = {}
    for name, array in arrays.items():
        if not hasattr(array, "shape"):
            raise ValueError(f"{source}: {name} is no array of weights; expected a state dict.")
        if hasattr(array, "detach"):
            array = array.detach().float().numpy()
        found[name.removeprefix("module.")] = np.asarray(array, "float32")
    return found
