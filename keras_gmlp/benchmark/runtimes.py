"""The runtimes to measure, each from uint8 pixels in NumPy to logits in NumPy.

A process loads a single runtime (see `worker`), because its threads are set at the start.
"""

import contextlib
import functools
import importlib
import math
import os

import numpy as np

BACKENDS = ("tensorflow", "jax", "torch")

PRECISIONS = {"openvino": "f32", "openvino-bfloat16": "bf16"}  # as OpenVINO names them

NOT_FLOAT32 = ("tflite", "tflite_int8", "openvino-bfloat16")  # in their matrix products

_THREADS = (
    *("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"),
    "TF_NUM_INTRAOP_THREADS",
    *("NPROC", "PJRT_NPROC"),  # the number of cores for XLA under JAX
)


def variables(threads, backend):
    """Returns environment variables that limit a process to the CPU and a number of threads."""
    flags = os.environ.get("XLA_FLAGS", "")
    alone = "--xla_cpu_multi_thread_eigen=false" if threads == 1 else ""
    return {
        **dict.fromkeys(_THREADS, str(threads)),
        "TF_NUM_INTEROP_THREADS": "1",
        "XLA_FLAGS": f"{flags} {alone}".strip(),
        "KERAS_BACKEND": backend,
        "KERAS_TORCH_DEVICE": "cpu",
        "JAX_PLATFORMS": "cpu",
        "CUDA_VISIBLE_DEVICES": "-1",
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
    }


def load(settings):
    """Loads a runtime."""
    run = RUNTIMES[settings["runtime"]](settings)
    if settings["runtime"].startswith("product"):
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
    threads, precision = settings["threads"], settings["precision"]
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
    if settings["runtime"] == "timm-compiled":
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


def _product_numpy(settings):
    """The product of two square float32 matrices, the limit of what the machine can do."""

    def prepare(rows):
        left, right = np.random.default_rng(0).random((2, rows, rows), "float32")
        return lambda: left @ right

    return prepare


def _product_torch(settings):
    torch = _torch(settings)

    def prepare(rows):
        left, right = torch.rand(2, rows, rows)
        return lambda: left @ right

    return prepare


def _torch(settings):
    import torch

    torch.set_num_threads(settings["threads"])
    return torch


RUNTIMES = {
    "keras": _keras,
    "file": _file,
    "openvino": _openvino,
    "timm": _timm,
    "timm-compiled": _timm,
    "product-numpy": _product_numpy,
    "product-torch": _product_torch,
}
