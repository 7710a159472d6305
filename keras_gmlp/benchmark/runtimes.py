"""What is measured: each runtime, from uint8 pixels in NumPy to logits in NumPy.

A process holds one runtime (see `worker`): its threads are set as it starts.
"""

import os

import numpy as np

BACKENDS = ("tensorflow", "jax", "torch")

EIGHT_BIT = ("tflite", "tflite_int8")  # the formats that compute with integers

_THREADS = (
    *("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"),
    "TF_NUM_INTRAOP_THREADS",
    *("NPROC", "PJRT_NPROC"),  # what XLA takes for the number of cores, under JAX
)


def variables(threads, backend):
    """Environment variables that hold a process to the CPU and to so many threads there."""
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


def load(order):
    """Loads a runtime.

    Args:
        order: a dict with `runtime`, a key of `RUNTIMES`, `threads`, and what that runtime needs:
            `path` of the model or `architecture` of timm's, and `shape` `(height, width, channels)`
            of an image and `classes`.

    Returns:
        A function of a size (images in a batch, or rows of a square matrix) that makes the input
        and returns a function without arguments: one call of it is what is measured.
    """
    run = RUNTIMES[order["runtime"]](order)
    if order["runtime"].startswith("product"):
        return run
    rng = np.random.default_rng(0)

    def prepare(batch):
        images = rng.integers(0, 256, (batch, *order["shape"]), "uint8")
        return lambda: run(images)

    return prepare


def _keras(order):
    """`predict_on_batch`: compiled by XLA under TensorFlow and JAX, eager under PyTorch."""
    from keras_gmlp import inference

    if os.environ["KERAS_BACKEND"] == "torch":
        _torch(order)
    return inference.load(order["path"]).model.predict_on_batch


def _file(order):
    from keras_gmlp import inference

    return inference.load(order["path"], threads=order["threads"]).logits


def _timm(order):
    """timm's model behind the same work on pixels as ours; its weights are random."""
    torch = _torch(order)
    import timm

    height, width, channels = order["shape"]
    model = timm.create_model(
        order["architecture"],
        num_classes=order["classes"],
        in_chans=channels,
        img_size=(height, width),
    )
    model.eval()
    mean, std = (
        torch.tensor(model.default_cfg[name]).reshape(3, 1, 1) * 255 for name in ("mean", "std")
    )
    if order["runtime"] == "timm-compiled":
        model = torch.compile(model, dynamic=False)

    def logits(images):
        with torch.inference_mode():
            pixels = torch.from_numpy(images).permute(0, 3, 1, 2).float()
            return model((pixels - mean) / std).numpy()

    return logits


def _product_numpy(order):
    """Of two square float32 matrices: what the machine can do at best."""

    def prepare(rows):
        left, right = np.random.default_rng(0).random((2, rows, rows), "float32")
        return lambda: left @ right

    return prepare


def _product_torch(order):
    torch = _torch(order)

    def prepare(rows):
        left, right = torch.rand(2, rows, rows)
        return lambda: left @ right

    return prepare


def _torch(order):
    import torch

    torch.set_num_threads(order["threads"])
    return torch


RUNTIMES = {
    "keras": _keras,
    "file": _file,
    "timm": _timm,
    "timm-compiled": _timm,
    "product-numpy": _product_numpy,
    "product-torch": _product_torch,
}
