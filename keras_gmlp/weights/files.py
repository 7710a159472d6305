"""Published weights as files: from a path or a hub name to arrays by their names."""

import argparse
import dataclasses
import json
import pickle
from pathlib import Path

import numpy as np

from keras_gmlp.data.read_image import INTERPOLATIONS
from keras_gmlp.utils.errors import shortened
from keras_gmlp.utils.files import atomic_write, write_json

HUB = "hf-hub:"

SUFFIXES = (".safetensors", ".pth", ".pt", ".npz", ".bin")


@dataclasses.dataclass(frozen=True)
class PretrainedConfig:
    """What a publisher's config.json says; `None` where it says nothing.

    Attributes:
        architecture: timm's name of it.
        mean, std: of the channels of pixels in [0, 1].
        image_shape: `(height, width, channels)`.
        crop: part of the picture's shorter side that is kept; see `images.read_image`.
        interpolation: see `images.read_image`.
        labels: class names.
        pool: what the head reads, `"token"` or `"avg"`.
    """

    architecture: str | None = None
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    image_shape: tuple[int, int, int] | None = None
    crop: float | None = None
    interpolation: str | None = None
    labels: tuple[str, ...] | None = None
    pool: str | None = None


@dataclasses.dataclass(frozen=True)
class PublishedWeights:
    """Arrays by their names, and what the publisher says about them.

    Attributes:
        arrays: float32 arrays.
        config: a `Described`.
        origin: path or hub name.
    """

    arrays: dict
    config: PretrainedConfig
    origin: str


def is_published(source):
    """Whether a source is a name on the hub or, by its suffix, a file of published weights."""
    return str(source).startswith(HUB) or Path(source).suffix in SUFFIXES


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
    return PublishedWeights(_read(path, source), _described(Path(config)), source)


def _described(path):
    """Reads timm's config.json, of which older ones hold everything at the top."""
    if not path.is_file():
        return PretrainedConfig()
    try:
        config = json.loads(path.read_text())
        values = {**config, **(config.get("pretrained_cfg") or {})}
        arguments = config.get("model_args") or {}
        if arguments.get("img_size"):  # which was built otherwise than the architecture is
            channels, *_ = values.get("input_size") or (3,)
            size = arguments["img_size"]
            sides = list(size) if isinstance(size, list) else [size, size]
            values["input_size"] = [arguments.get("in_chans", channels), *sides]
        mode = values.get("crop_mode", "center")
        if mode != "center":
            raise ValueError(f"crop_mode {mode!r} is not known, 'center' is")
        size, crop = values.get("input_size"), values.get("crop_pct")
        channels, height, width = map(int, size) if size else (None,) * 3
        if crop is not None and not 0 < crop <= 1:
            raise ValueError(f"crop_pct must be in (0, 1], is {crop}")
        interpolation = values.get("interpolation")
        if interpolation not in (None, *INTERPOLATIONS):
            known = ", ".join(INTERPOLATIONS)
            raise ValueError(f"interpolation {interpolation!r} is none of {known}")
        labels = values.get("label_names")
        if isinstance(labels, dict):
            labels = labels.values()
        architecture = config.get("architecture")
        moments = {name: values[name] for name in ("mean", "std") if values.get(name)}
        return PretrainedConfig(
            architecture=architecture if architecture is None else str(architecture),
            **{name: tuple(map(float, numbers)) for name, numbers in moments.items()},
            image_shape=(height, width, channels) if size else None,
            crop=crop,
            interpolation=interpolation,
            labels=tuple(map(str, labels)) if labels else None,
            pool=config.get("global_pool"),
        )
    except (ValueError, TypeError, AttributeError, OverflowError, OSError) as error:
        raise ValueError(f"{path}: not as timm writes it ({error}).") from None


def short_name(source):
    """A name for what is made from a source: its file's or folder's, or the hub's last part."""
    if str(source).startswith(HUB):
        return str(source).partition("@")[0].rstrip("/").rpartition("/")[2]
    path = Path(source)
    if path.suffix not in (*SUFFIXES, ".keras"):
        return path.resolve().name
    return path.resolve().parent.name if path.stem == "model" else path.stem


def write_checkpoint(path, arrays, config):
    """Writes arrays as a `.safetensors` file, and what describes them as config.json beside it.

    Raises:
        ValueError: safetensors is not installed, or the folder's config.json is of another file.
    """
    path = Path(path)
    beside = path.with_name("config.json")
    if beside.exists() and not path.exists():
        raise ValueError(
            f"{path}: {beside} is there already, and of another file; choose another folder."
        )
    try:
        from safetensors.numpy import save
    except ImportError as error:
        raise ValueError(f"{path}: {error}; install it: pip install -e '.[convert]'") from None
    with atomic_write(path) as temporary:
        temporary.write_bytes(save(arrays))
    write_json(beside, config)


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
            reason = shortened(str(error), 160)
            raise ValueError(
                f"{source}: {file} is not in the cache and could not be downloaded; check the name "
                f"and the connection, or give a file ({reason})."
            ) from None
    return Path(paths[0]), Path(paths[1])


def _read(path, source):
    """A file's state dict, float32 arrays by their names."""
    if path.suffix not in SUFFIXES:
        raise ValueError(f"{source}: unknown kind of file; expected one of {', '.join(SUFFIXES)}.")
    try:
        return _unwrapped(_load(path))
    except ImportError as error:
        extra = "convert" if path.suffix == ".safetensors" else "torch"
        raise ValueError(f"{source}: {error}; install it: pip install -e '.[{extra}]'") from None
    except pickle.UnpicklingError as error:
        if "Unsupported global" not in str(error):
            raise ValueError(f"{source}: damaged, or no file of PyTorch's weights.") from None
        raise ValueError(
            f"{source}: holds more than weights, which could run code when it is read; refused. "
            "Ask for a .safetensors file."
        ) from None
    except Exception as error:  # each reader raises errors of its own for a damaged file
        reason = shortened(str(error), 160)
        raise ValueError(f"{source}: damaged or of another kind ({reason}).") from None


def _load(path):
    """What a file holds, code excepted."""
    if path.suffix == ".safetensors":
        from safetensors.numpy import load_file

        return load_file(path)
    if path.suffix == ".npz":
        # Opened here, since NumPy leaves a damaged file open.
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as arrays:
            return dict(arrays)
    import torch

    # timm's and DeiT's training scripts put their arguments beside the weights.
    with torch.serialization.safe_globals([argparse.Namespace]):
        return torch.load(path, map_location="cpu", weights_only=True)


def _unwrapped(arrays):
    """The state dict alone, where a training script has wrapped it, as float32 arrays."""
    if not isinstance(arrays, dict):
        raise ValueError(f"a {type(arrays).__name__} and no state dict")
    for key in ("state_dict_ema", "model_ema", "state_dict", "model"):
        if isinstance(arrays.get(key), dict):
            arrays = arrays[key]
            break
    found = {}
    for name, array in arrays.items():
        if not hasattr(array, "shape") or not isinstance(name, str):
            raise ValueError(f"{name} is no array of weights; expected a state dict")
        if hasattr(array, "detach"):
            array = array.detach().float().numpy()
        found[name.removeprefix("module.")] = np.asarray(array, "float32")
    return found
