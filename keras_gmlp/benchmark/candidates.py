"""The ways to run a model."""

import dataclasses

from keras_gmlp.benchmark.runtimes import BACKENDS, EIGHT_BIT

PRODUCT = 1024  # rows of the square matrices; 2.1 GFLOP, and all three stay in most caches

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
    "timm": "timm, PyTorch",
    "timm-compiled": "timm, torch.compile",
    "product-numpy": "matrix product, NumPy",
    "product-torch": "matrix product, PyTorch",
}


@dataclasses.dataclass(frozen=True, eq=False)
class Candidate:
    """One way to run a model.

    Attributes:
        name: a short one, as `--only` takes it.
        threads: it is held to.
        order: for `runtimes.load`, without the threads.
        sizes: to measure at: images in a batch, or rows of a matrix.
        backend: of Keras, where it takes part.
        missing: why there is nothing to start, if so; one line.
    """

    name: str
    threads: int
    order: dict
    sizes: tuple[int, ...]
    backend: str = "tensorflow"
    missing: str | None = None

    @property
    def title(self):
        return f"{TITLES.get(self.name, self.name)}, {threads_text(self.threads)}"

    @property
    def reference(self):
        """Whether it is a matrix product, to which the others are compared."""
        return self.name in REFERENCES

    @property
    def floating(self):
        """Whether it computes in float32, as the matrix products do."""
        return self.name not in EIGHT_BIT


def threads_text(threads):
    return "1 thread" if threads == 1 else f"{threads} threads"


def names(formats):
    """All names that a candidate can have, beside the matrix products."""
    return (*(f"keras-{backend}" for backend in BACKENDS), *formats, *TIMM)


def candidates(model, threads, batches, only=None):
    """The candidates for a model, and the matrix products.

    Args:
        model: a `models.Model`.
        threads: numbers of them, one candidate each.
        batches: numbers of images.
        only: names of those wanted; all without it.

    Returns:
        A list of `Candidate`s; timm's only where it has the model, or when asked for.
    """
    orders = {name: {"runtime": name} for name in REFERENCES}
    orders |= {f"keras-{b}": {"runtime": "keras", "path": str(model.keras)} for b in BACKENDS}
    orders |= {name: {"runtime": "file", "path": str(path)} for name, path in model.files.items()}
    missing = dict(model.errors)
    if model.architecture:
        orders |= {n: {"runtime": n, "architecture": model.architecture} for n in TIMM}
    elif only:
        missing |= dict.fromkeys(TIMM, f"timm has no model like {model.name}")
    orders |= {name: {} for name in missing}
    facts = {"shape": list(model.shape), "classes": model.classes}
    return [
        Candidate(
            name,
            number,
            {**order, **facts},
            (PRODUCT,) if name in REFERENCES else tuple(batches),
            name.removeprefix("keras-") if name.startswith("keras-") else "tensorflow",
            missing.get(name),
        )
        for number in threads
        for name, order in orders.items()
        if only is None or name in only or name in REFERENCES
    ]
