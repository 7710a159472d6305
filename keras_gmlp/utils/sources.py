"""`find_model`: where a model is and of which kind, by a name, a path or a name on the hub."""

import functools
import os
import re
import zipfile
from pathlib import Path

from keras_gmlp.utils.card import CARD, LABELS, TOKENIZER
from keras_gmlp.utils.environment import require
from keras_gmlp.utils.errors import did_you_mean, first_of, shortened
from keras_gmlp.utils.files import atomic_write, why_missing
from keras_gmlp.utils.formats import FORMATS
from keras_gmlp.utils.parsers import WEIGHTS as KERAS_WEIGHTS

SHIPPED = Path(__file__).resolve().parents[2] / "saved_models"  # in a clone of the repository
DEFAULT_LANGUAGE_MODEL = "amlp_nano-wiki"  # fills in masks, and finds similar texts
DEFAULT_BACKBONE = "gmlp_photo_64"  # for a user's own images

HUB = "hf://"
HUBS = (HUB, "hf-hub:")  # the second in the settings of older runs
WEIGHTS = "model.safetensors"  # published ones in a folder, as in the hub's cache
SUFFIXES = (".safetensors", ".pth", ".pt", ".npz", ".bin", ".ckpt", ".pth.tar", ".pt.tar")

# The kinds of models. A folder of a run holds one file of each but the last.
FILES = {
    "tflite": FORMATS["tflite"].path,
    "features": FORMATS["features"].path,
    "keras": "model.keras",
    "saved_model": FORMATS["saved_model"].path,
    "onnx": FORMATS["onnx"].path,
}
KINDS = (*FILES, "published")
TRAINABLE = ("keras", "published")
FEATURES_FIRST = ("features", "keras", *KINDS)  # for vectors of images or texts
# The models that are downloaded from the hub, where Keras stores a .keras file member by member.
ON_HUB = (FILES["tflite"], FILES["features"], FILES["keras"], KERAS_WEIGHTS, WEIGHTS)
EXPECTED = {
    "tflite": "a .tflite file",
    "keras": "a .keras file",
    "saved_model": "the folder of a SavedModel",
    "onnx": "an .onnx file",
    "published": f"published weights (a file such as {WEIGHTS}, its folder or {HUB}NAME)",
}


def find_model(source, kinds=KINDS):
    """Finds a model.

    Args:
        source: A file; the folder of a run, of a SavedModel or of published weights; the name of
            an included model, or `"hf://NAME"` for one on the Hugging Face hub.
        kinds: The kinds that the caller takes, of `KINDS`. The folder of a run stands for its file
            of the first of these. `"run"` takes that folder itself.

    Returns:
        `(path, kind)`. The path of a model on the hub is in the cache of the hub's client.

    Raises:
        ValueError: If there is no such model, or none of these kinds. One line.
    """
    names = [EXPECTED[kind] for kind in kinds if kind in EXPECTED]
    wanted = f"expected {', '.join([*names, 'the folder of a run'])} or an included model's name"
    if str(source).startswith(HUBS):
        path = _download(source)
    else:
        path = Path(find_shipped(source)).expanduser()
        if not path.exists():
            missing = why_missing(path, "model file or folder")
            raise ValueError(f"{path}: {missing}; {wanted}.{suggest_shipped(source)}")
    found = _list_models(path)
    for kind in kinds:
        if kind in found:
            return found[kind], kind
    raise ValueError(f"{source}: {_explain(path, found)}; {wanted}.")


def _download(source):
    """Returns the folder of a model on the hub, whose missing files are downloaded."""
    hub = require("huggingface_hub", f"{source}: a model on the hub", "convert")
    name, _, revision = source.partition(":")[2].lstrip("/").partition("@")
    get = functools.partial(hub.snapshot_download, name, revision=revision or None)
    try:
        folder = Path(get(allow_patterns=[*ON_HUB, "*.json", "*.txt"]))
        if not any((folder / file).exists() for file in ON_HUB):
            get(allow_patterns="pytorch_model.bin")  # of an older BERT
    except Exception as error:  # of the network, the name, the revision or the disk
        is_general = isinstance(error, FileNotFoundError)  # the client's, for any other error
        reason = shortened(str((is_general and error.__cause__) or error), 160)
        raise ValueError(
            f"{source}: not in the cache, and could not be downloaded; check the name, "
            f"{HUB}OWNER/MODEL, and the connection ({reason})."
        ) from None
    stored = ("metadata.json", "config.json", KERAS_WEIGHTS)
    is_whole = all((folder / member).exists() for member in stored)  # or a download was stopped
    if is_whole and not (folder / FILES["keras"]).exists():
        members = (*stored, CARD, LABELS, TOKENIZER)
        with atomic_write(folder / FILES["keras"]) as path, zipfile.ZipFile(path, "w") as archive:
            for member in members:
                if (folder / member).exists():
                    archive.write(folder / member, member)
    return folder


def list_shipped():
    """Returns the names of the included models, in alphabetical order; none in a wheel."""
    return sorted(p.name for p in SHIPPED.glob("[!.]*/"))


def find_shipped(source):
    """Returns the path of an included model, or of a file of it; any other source as it is."""
    # A path that exists comes before a name.
    if not isinstance(source, str | os.PathLike) or os.path.exists(source):
        return source
    name, *rest = re.split(r"[/\\]", str(source))
    known = name in list_shipped() and ".." not in rest
    return SHIPPED / source if known and (SHIPPED / source).exists() else source


def suggest_shipped(source):
    """Returns the end of an error for a source that is missing: the included models' near names."""
    if not re.fullmatch(r"[\w-]+", str(source)):  # a path mostly has a separator or a suffix
        return ""
    if not SHIPPED.is_dir():
        return " Included models come with a clone of the repository: pip install -e . in it."
    return did_you_mean(source, list_shipped(), str, most=3)


def find_suffix(path):
    """Returns which of `SUFFIXES` a file has, in any case; no text if none."""
    name = Path(path).name.lower()
    return next((suffix for suffix in SUFFIXES if name.endswith(suffix)), "")


def _list_models(path):
    """Returns the models at a path that exists, paths by kind."""
    if not path.is_dir():
        kind = next((k for k, f in FILES.items() if Path(f).suffix == path.suffix != ""), None)
        kind = "published" if find_suffix(path) else kind
        return {kind: path} if kind else {}
    if (path / "saved_model.pb").exists():
        return {"saved_model": path}
    found = {kind: path / name for kind, name in FILES.items() if (path / name).exists()}
    found |= {"run": path} if found else {}
    is_published = any((path / name).is_file() for name in (WEIGHTS, "config.json"))
    return {**found, "published": path} if is_published else found


def _explain(path, found):
    """Returns why a path holds none of the kinds that a caller takes."""
    if "published" in found:
        return "published weights, which keras_gmlp.build opens"
    if not path.is_dir():
        return "a file of another kind" if found else "unknown kind of model"
    if (path / "recipe.json").exists() and not (path / "metrics.json").exists():
        return "this run is not complete; finish it"
    if found:
        return f"has only {', '.join(FILES[kind] for kind in found if kind in FILES)}"
    runs = sorted({p.parent.name for name in FILES.values() for p in path.glob(f"*/{name}")})
    way = f"; give one of the folders in it: {first_of(runs, 10, 'or')}" if runs else ""
    return f"no model in this folder{way}"
