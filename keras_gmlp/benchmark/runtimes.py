"""The ways to run a model, each from uint8 pixels in NumPy to logits in NumPy.

A process loads a single runtime (see `worker`), because its threads are set at the start.
"""

import contextlib
import dataclasses
import functools
import importlib
import math
import os
from collections.abc import Callable

import numpy as np

PRODUCT = 1024  # rows of the square matrices: 2.1 GFLOP, and all three fit most caches

_THREADS = (
    *("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"),
    "TF_NUM_INTRAOP_THREADS",
    *("NPROC", "PJRT_NPROC"),  # the number of cores for XLA under JAX
)


def variables(threads, name):
    """Returns environment variables that limit a runtime to the CPU and a number of threads."""
    flags = os.environ.get("XLA_FLAGS", "")
    alone = "--xla_cpu_multi_thread_eigen=false" if threads == 1 else ""
    return {
        **dict.fromkeys(_THREADS, str(threads)),
        "TF_NUM_INTEROP_THREADS": "1",
        "XLA_FLAGS": f"{flags} {alone}".strip(),
        "KERAS_BACKEND": name[6:] if name.startswith("keras-") else "tensorflow",
        "KERAS_TORCH_DEVICE": "cpu",
        "JAX_PLATFORMS": "cpu",
        "CUDA_VISIBLE_DEVICES": "-1",
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
    }


def load(settings):
    """Loads a runtime; returns a function from a batch size to a call."""
    runtime = RUNTIMES[settings["name"]]
    run = runtime.load(settings)
    if runtime.is_product:
        return run
    rng = np.random.default_rng(0)

    def prepare(batch):
        images = rng.integers(0, 256, (batch, *settings["shape"]), "uint8")
        return lambda: run(images)

    return prepare


def _keras(settings):
    """`predict_on_batch`, which XLA compiles; under PyTorch `inference`, which replays."""
    from keras_gmlp.inference import images as inference

    if os.environ["KERAS_BACKEND"] == "torch":
        _torch(settings)
        return inference.load(settings["path"]).logits
    return inference.load(settings["path"]).model.predict_on_batch


def _file(settings):
    from keras_gmlp.inference import images as inference

    return inference.load(settings["path"], threads=settings["threads"]).logits


def _openvino(settings):
    """An ONNX file in OpenVINO; a batch becomes a request for each thread."""
    try:
        import openvino
    except ImportError:
        raise ValueError("requires OpenVINO (pip install -e '.[openvino]')") from None
    threads = settings["threads"]
    precision = "bf16" if settings["name"] == "openvino-bfloat16" else "f32"
    core = openvino.Core()
    able = core.get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    if precision == "bf16" and "BF16" not in able:
        raise ValueError("requires a processor with bfloat16")  # OpenVINO would use float32
    options = {
        "INFERENCE_NUM_THREADS": threads,
        "INFERENCE_PRECISION_HINT": precision,
        "ENABLE_CPU_PINNING": False,  # no other runtime binds its threads to cores
    }

    def compiled(batch, hint):
        network = core.read_model(settings["path"])
        network.reshape([batch, *settings["shape"]])  # a fixed batch is faster
        return core.compile_model(network, "CPU", {**options, "PERFORMANCE_HINT": hint})

    @functools.cache
    def function(batch):
        requests = math.gcd(batch, threads)
        if requests == 1:
            network = compiled(batch, "LATENCY")
            return lambda images: network(images)[0]
        part = batch // requests
        queue = openvino.AsyncInferQueue(compiled(part, "THROUGHPUT"))

        def logits(images):
            answer = np.empty((batch, settings["classes"]), "float32")
            queue.set_callback(lambda done, rows: np.copyto(rows, done.get_output_tensor().data))
            for i in range(0, batch, part):
                queue.start_async(images[i : i + part], answer[i : i + part])
            queue.wait_all()
            return answer

        return logits

    return lambda images: function(len(images))(images.astype("float32"))


def _timm(settings):
    """timm's model with random weights, after the same work on pixels as ours."""
    torch = _torch(settings)
    import_torchvision()
    import timm

    height, width, channels = settings["shape"]
    model = timm.create_model(
        settings["architecture"],
        num_classes=settings["classes"],
        in_chans=channels,
        img_size=(height, width),
    )
    model.eval()
    mean, std = (
        torch.tensor(model.default_cfg[name]).reshape(3, 1, 1) * 255 for name in ("mean", "std")
    )
    if settings["name"] == "timm-compiled":
        model = torch.compile(model, dynamic=False)

    def logits(images):
        with torch.inference_mode():
            pixels = torch.from_numpy(images).permute(0, 3, 1, 2).float()
            return model((pixels - mean) / std).numpy()

    return logits


def import_torchvision():
    """Declares the operators that a torchvision for another build of PyTorch lacks."""
    # Without them its import fails, and so does timm's. They detect objects; classifiers do not.
    try:
        importlib.import_module("torchvision")
    except ImportError:  # whoever needs it reports that
        return
    except RuntimeError:  # operator torchvision::nms does not exist
        library = _torchvision_library()
        names = ("nms", "roi_align", "roi_pool", "ps_roi_align", "ps_roi_pool", "deform_conv2d")
        for name in names:
            for variant in (name, f"_{name}_backward", f"q{name}"):
                with contextlib.suppress(RuntimeError):  # it exists
                    library.define(f"{variant}() -> ()")
        importlib.import_module("torchvision")


@functools.cache  # its operators live as long as this object
def _torchvision_library():
    import torch

    return torch.library.Library("torchvision", "DEF")


def _product(settings):
    """The product of two square float32 matrices, the limit of what the machine can do."""
    torch = _torch(settings) if settings["name"] == "product-torch" else None

    def prepare(rows):
        left, right = np.random.default_rng(0).random((2, rows, rows), "float32")
        if torch is not None:
            left, right = torch.from_numpy(left), torch.from_numpy(right)
        return lambda: left @ right

    return prepare


def _torch(settings):
    import torch

    torch.set_num_threads(settings["threads"])
    return torch


@dataclasses.dataclass(frozen=True)
class Runtime:
    """A way to run a model."""

    title: str
    load: Callable  # of the settings of a candidate
    reads: str  # the format of the file, "keras", "timm" for an architecture, or "product"
    is_float32: bool = True  # in its matrix products

    @property
    def is_product(self):
        return self.reads == "product"


RUNTIMES = {
    "product-numpy": Runtime("matrix product, NumPy", _product, "product"),
    "product-torch": Runtime("matrix product, PyTorch", _product, "product"),
    "keras-tensorflow": Runtime("Keras on TensorFlow", _keras, "keras"),
    "keras-jax": Runtime("Keras on JAX", _keras, "keras"),
    "keras-torch": Runtime("Keras on PyTorch", _keras, "keras"),
    "tflite": Runtime("TFLite, 8-bit weights", _file, "tflite", False),
    "tflite_float16": Runtime("TFLite, float16 weights", _file, "tflite_float16"),
    "tflite_float32": Runtime("TFLite, float32", _file, "tflite_float32"),
    "tflite_int8": Runtime("TFLite, full integer", _file, "tflite_int8", False),
    "saved_model": Runtime("SavedModel", _file, "saved_model"),
    "onnx": Runtime("ONNX Runtime", _file, "onnx"),
    "openvino": Runtime("OpenVINO, float32", _openvino, "onnx"),
    "openvino-bfloat16": Runtime("OpenVINO, bfloat16", _openvino, "onnx", False),
    "timm": Runtime("timm, PyTorch", _timm, "timm"),
    "timm-compiled": Runtime("timm, torch.compile", _timm, "timm"),
}

NAMES = [name for name, runtime in RUNTIMES.items() if not runtime.is_product]  # as `--only` has


@dataclasses.dataclass(frozen=True, eq=False)
class Candidate:
    """A runtime with a number of threads; `settings` are for `load`."""

    name: str
    threads: int
    settings: dict
    sizes: tuple[int, ...]  # batch sizes to measure, or numbers of rows for a matrix product
    missing: str | None = None  # why the candidate cannot start, on one line

    @property
    def runtime(self):
        return RUNTIMES[self.name]

    @property
    def title(self):
        return f"{self.runtime.title}, {threads_text(self.threads)}"


def threads_text(threads):
    return "1 thread" if threads == 1 else f"{threads} threads"


def required_formats(only=None):
    """Returns the formats that the candidates read; `only` as in `list_candidates`."""
    read = [RUNTIMES[name].reads for name in NAMES if name in (only or NAMES)]
    return [name for name in dict.fromkeys(read) if name not in ("keras", "timm")]


def list_candidates(model, threads, batches, only=None):
    """Lists the candidates for a `files.Model` and the matrix products."""
    paths, found = {"keras": model.keras, **model.files}, {}
    for name, runtime in RUNTIMES.items():
        reads, missing = runtime.reads, model.errors.get(runtime.reads)
        if missing and reads != name:
            missing = f"requires the ONNX file ({missing})"
        if reads == "timm" and only and not model.architecture:
            missing = f"timm has no model like {model.name}"
        exists = reads in paths or (model.architecture if reads == "timm" else runtime.is_product)
        if (exists or missing) and (runtime.is_product or name in (only or NAMES)):
            settings = {"path": str(paths.get(reads)), "architecture": model.architecture}
            settings |= {"name": name, "shape": list(model.shape), "classes": model.classes}
            found[name] = settings, (PRODUCT,) if runtime.is_product else tuple(batches), missing
    return [Candidate(n, number, *given) for number in threads for n, given in found.items()]
