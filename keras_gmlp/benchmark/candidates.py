"""The ways to run a model."""

import dataclasses

from keras_gmlp.benchmark.runtimes import BACKENDS, NOT_FLOAT32, PRECISIONS

PRODUCT = 1024  # rows of the square matrices: 2.1 GFLOP, and all three fit most caches

REFERENCES = ("product-numpy", "product-torch")

TIMM = ("timm", "timm-compiled")

TITLES = {
    "keras-tensorflow": "Keras on TensorFlow",
    "keras-jax": "Keras on JAX",
    "keras-torch": "Keras on PyTorch",
    "saved_model": "SavedModel",
    "tflite": "TFLite, 8-bit weights",
    "tflite_float16": "TFLite, float16 weights",
    "tflite_float32": "TFLite, float32",
    "tflite_int8": "TFLite, full integer",
    "onnx": "ONNX Runtime",
    "openvino": "OpenVINO, float32",
    "openvino-bfloat16": "OpenVINO, bfloat16",
    "timm": "timm, PyTorch",
    "timm-compiled": "timm, torch.compile",
    "product-numpy": "matrix product, NumPy",
    "product-torch": "matrix product, PyTorch",
}


@dataclasses.dataclass(frozen=True, eq=False)
class Candidate:
    """One way to run a model."""

    name: str  # as `--only` takes it
    threads: int
    settings: dict  # arguments of `runtimes.load`, except the threads
    sizes: tuple[int, ...]  # batch sizes to measure, or numbers of rows for a matrix product
    backend: str = "tensorflow"
    missing: str | None = None  # why the candidate cannot start, on one line

    @property
    def title(self):
        return f"{TITLES.get(self.name, self.name)}, {threads_text(self.threads)}"

    @property
    def reference(self):
        """Whether this is a matrix product, the limit that the others are compared with."""
        return self.name in REFERENCES

    @property
    def comparable(self):
        """Whether it returns logits of the model's own weights; timm's model has others."""
        return self.name not in (*REFERENCES, *TIMM)

    @property
    def floating(self):
        """Whether it computes in float32, like the matrix products."""
        return self.name not in NOT_FLOAT32


def threads_text(threads):
    return "1 thread" if threads == 1 else f"{threads} threads"


def candidate_names(formats):
    """Returns the names of all candidates except the matrix products."""
    return (*(f"keras-{backend}" for backend in BACKENDS), *formats, *PRECISIONS, *TIMM)


def required_formats(formats, only=None):
    """Returns the formats that the candidates read; `only` as in `list_candidates`."""
    wanted = set(only or formats)
    if wanted & set(PRECISIONS):
        wanted.add("onnx")
    return [name for name in formats if name in wanted]


def list_candidates(model, threads, batches, only=None):
    """Lists the candidates for a model and the matrix products."""
    settings = {name: {"runtime": name} for name in REFERENCES}
    settings |= {f"keras-{b}": {"runtime": "keras", "path": str(model.keras)} for b in BACKENDS}
    settings |= {n: {"runtime": "file", "path": str(path)} for n, path in model.files.items()}
    missing = dict(model.errors)
    if "onnx" in model.files:
        onnx = {"runtime": "openvino", "path": str(model.files["onnx"])}
        settings |= {name: {**onnx, "precision": p} for name, p in PRECISIONS.items()}
    elif "onnx" in missing:
        missing |= dict.fromkeys(PRECISIONS, f"requires the ONNX file ({missing['onnx']})")
    if model.architecture:
        settings |= {n: {"runtime": n, "architecture": model.architecture} for n in TIMM}
    elif only:
        missing |= dict.fromkeys(TIMM, f"timm has no model like {model.name}")
    settings |= {name: {} for name in missing}
    shared = {"shape": list(model.shape), "classes": model.classes}
    return [
        Candidate(
            name,
            number,
            {**own, **shared},
            (PRODUCT,) if name in REFERENCES else tuple(batches),
            name.removeprefix("keras-") if name.startswith("keras-") else "tensorflow",
            missing.get(name),
        )
        for number in threads
        for name, own in settings.items()
        if only is None or name in only or name in REFERENCES
    ]
