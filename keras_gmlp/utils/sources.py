"""`find_model`: where a model is and of which kind, by a name, a path or a name on the hub."""

from pathlib import Path

from keras_gmlp.utils.errors import first_of
from keras_gmlp.utils.files import why_missing
from keras_gmlp.utils.shipped import find_shipped, suggest_shipped

HUB = "hf-hub:"
WEIGHTS = "model.safetensors"  # published ones in a folder, as in the hub's cache
SUFFIXES = (".safetensors", ".pth", ".pt", ".npz", ".bin", ".ckpt", ".pth.tar", ".pt.tar")

# The file or folder of each kind in the folder of a run. "features" is a .tflite file, too.
FILES = {
    "tflite": "model.tflite",
    "features": "model_features.tflite",
    "keras": "model.keras",
    "saved_model": "saved_model",
    "onnx": "model.onnx",
}
KINDS = (*FILES, "published")
TRAINABLE = ("keras", "published")
FEATURES_FIRST = ("features", "keras", *KINDS)  # for vectors of images or texts
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
            an included model, or `"hf-hub:NAME"`.
        kinds: The kinds that the caller takes, of `KINDS`. The folder of a run stands for its file
            of the first of these. `"run"` takes that folder itself.

    Returns:
        `(path, kind)`. The path is a `Path`, or the name on the hub.

    Raises:
        ValueError: If there is no such model, or none of these kinds. One line.
    """
    names = [EXPECTED[kind] for kind in kinds if kind in EXPECTED]
    wanted = f"expected {', '.join([*names, 'the folder of a run'])} or an included model's name"
    if not str(source):  # an unset variable of a shell
        raise ValueError(f"'': an empty path; {wanted}.")
    if str(source).startswith(HUB):
        path, found = source, {"published": source}
    else:
        path = Path(find_shipped(source)).expanduser()
        if not path.exists():
            missing = why_missing(path, "model file or folder")
            raise ValueError(f"{path}: {missing}; {wanted}.{suggest_shipped(source)}")
        found = _list_models(path)
    for kind in kinds:
        if kind in found:
            return found[kind], kind
    raise ValueError(f"{path}: {_explain(path, found)}; {wanted}.")


def find_suffix(path):
    """Returns which of `SUFFIXES` a file has, in any case; no text if none."""
    name = Path(path).name.lower()
    return next((suffix for suffix in SUFFIXES if name.endswith(suffix)), "")


def _list_models(path):
    """Returns the models at a path that exists, paths by kind."""
    if not path.is_dir():
        kind = {".tflite": "tflite", ".keras": "keras", ".onnx": "onnx"}.get(path.suffix)
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
        return "published weights, which keras_gmlp.weights.load opens"
    if not path.is_dir():
        return "a file of another kind" if found else "unknown kind of model"
    if (path / "recipe.json").exists() and not (path / "metrics.json").exists():
        return "this run is not complete; finish it"
    if found:
        return f"has only {', '.join(FILES[kind] for kind in found if kind in FILES)}"
    runs = sorted({p.parent.name for name in FILES.values() for p in path.glob(f"*/{name}")})
    way = f"; give one of the folders in it: {first_of(runs, 10, 'or')}" if runs else ""
    return f"no model in this folder{way}"
