"""Milliseconds of a model in Keras, in its exports, in OpenVINO and in timm, on the CPU.

A call takes uint8 pixels in NumPy and returns logits in NumPy. A TFLite file takes one image at a
time, so a batch is a loop. OpenVINO reads the ONNX file. timm is measured for gMLP presets; its
weights are others. *difference* is the largest one between the logits and those of Keras, *MB* the
peak memory, *s to answer* the time from the start of the process to its first answer.
"""

import functools
import os
import shutil
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.harness import (
    Candidate,
    import_torchvision,
    is_in_timm,
    make_parser,
    run,
    time_calls,
    timm_gmlp,
)
from keras_gmlp.utils.formats import FORMATS
from keras_gmlp.utils.sources import find_shipped

BEGAN = time.perf_counter()
RUNTIMES = {  # what each reads
    "keras-tensorflow": "keras",
    "keras-jax": "keras",
    "keras-torch": "keras",
    **{name: name for name, each in FORMATS.items() if each.usual},
    "openvino": "onnx",
    "openvino-bfloat16": "onnx",
    "timm": "timm",
    "timm-compiled": "timm",
}
THREADS = (
    *("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"),
    *("TF_NUM_INTRAOP_THREADS", "NPROC", "PJRT_NPROC"),  # the last two for XLA under JAX
)


def list_candidates(options):
    names = options.only or [
        name for name in RUNTIMES if RUNTIMES[name] != "timm" or is_in_timm(options.model)
    ]
    names = ["tflite"] if options.model.endswith(".tflite") else names
    for threads in options.threads:
        for name in names:
            measure = functools.partial(measure_runtime, name, threads)
            reference = f"{names[0]}, threads: {threads}"
            environment = limit_threads(threads, name)
            yield Candidate(f"{name}, threads: {threads}", measure, reference, environment)


def limit_threads(threads, name):
    """Returns environment variables that limit a runtime to the CPU and a number of threads."""
    alone = "--xla_cpu_multi_thread_eigen=false" if threads == 1 else ""
    return {
        **dict.fromkeys(THREADS, str(threads)),
        "TF_NUM_INTEROP_THREADS": "1",
        "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {alone}".strip(),
        "KERAS_BACKEND": name[6:] if name.startswith("keras-") else "tensorflow",
        "KERAS_TORCH_DEVICE": "cpu",
        "JAX_PLATFORMS": "cpu",
        "CUDA_VISIBLE_DEVICES": "-1",
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
    }


def prepare(options, folder):
    """Writes the model in each format, images of noise and their logits."""
    from keras_gmlp.export.writing import export
    from keras_gmlp.models.precision import in_float32
    from keras_gmlp.weights.loading import load
    from keras_gmlp.weights.pretrained import build

    source, path = Path(find_shipped(options.model)), folder / "model.keras"
    is_file = source.suffix == ".tflite"
    if is_file:
        path = shutil.copy(source, folder / FORMATS["tflite"].path)
    elif source.is_dir():
        model = in_float32(load(source / "model.keras").model)
        model.save(path)
    else:
        model, rng = build(options.model), np.random.default_rng(0)
        values = [value + rng.uniform(-0.02, 0.02, value.shape) for value in model.get_weights()]
        model.set_weights(values)  # a head of zeros would hide differences
        model.save(path)
    reference = load(path)
    shape = max(4, *options.batch), *reference.image_shape
    noise = np.random.default_rng(0).integers(0, 256, shape, "uint8")
    np.save(folder / "noise.npy", noise)
    np.save(folder / "logits.npy", reference.logits(noise[:1]))
    names = () if is_file else options.only or RUNTIMES
    for name in {RUNTIMES[name] for name in names} - {"keras", "timm"}:
        try:
            export(model, folder, [name], calibration=noise[:4])
        except (ValueError, RuntimeError, ImportError) as error:
            print(f"{name}: {error}", file=sys.stderr)


def measure_runtime(name, threads, options, folder):
    noise = np.load(folder / "noise.npy")
    call = load_runtime(name, threads, options.model, folder)
    logits, found = call(noise[:1]), {}
    seconds = time.perf_counter() - BEGAN
    for batch in options.batch:
        images = noise[:batch]
        once = time_calls(lambda images=images: call(images), 1)
        calls = min(200, max(3, round(options.seconds / once)))
        median = time_calls(lambda images=images: call(images), calls)
        found[f"ms, batch {batch}"] = 1000 * median
    if not name.startswith("timm"):
        found["difference"] = float(np.abs(logits - np.load(folder / "logits.npy")).max())
    return {**found, "MB": peak_megabytes(), "s to answer": seconds}


def load_runtime(name, threads, preset, folder):
    """Returns a function from uint8 images to logits."""
    if name.startswith("timm"):
        return load_timm(preset, threads, name == "timm-compiled")
    if name.startswith("openvino"):
        precision = "bf16" if name == "openvino-bfloat16" else "f32"
        return load_openvino(folder / "model.onnx", threads, precision)
    from keras_gmlp.weights.loading import load

    if name == "keras-torch":
        import torch

        torch.set_num_threads(threads)
    path = folder / ("model.keras" if name.startswith("keras") else FORMATS[name].path)
    model = load(path, threads=threads)
    if name in ("keras-tensorflow", "keras-jax"):
        return model.model.predict_on_batch  # XLA compiles it
    return model.logits


def load_openvino(path, threads, precision):
    """Returns an ONNX file in OpenVINO, which compiles each number of images."""
    import openvino

    core = openvino.Core()
    if precision == "bf16" and "BF16" not in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
        raise RuntimeError("requires a processor with bfloat16")  # OpenVINO would use float32
    options = {
        "INFERENCE_NUM_THREADS": threads,
        "INFERENCE_PRECISION_HINT": precision,
        "PERFORMANCE_HINT": "LATENCY",
        "ENABLE_CPU_PINNING": False,  # no other runtime binds its threads to cores
    }

    @functools.cache
    def compiled(shape):
        network = core.read_model(path)
        network.reshape(list(shape))  # a fixed batch is faster
        return core.compile_model(network, "CPU", options)

    return lambda images: compiled(images.shape)(images.astype("float32"))[0]


def load_timm(preset, threads, is_compiled):
    """Returns timm's model with random weights, after the same work on pixels as ours."""
    import torch

    torch.set_num_threads(threads)
    import_torchvision()
    model = timm_gmlp(preset).eval()
    model = torch.compile(model, dynamic=False) if is_compiled else model

    def logits(images):
        with torch.inference_mode():
            pixels = torch.from_numpy(images).permute(0, 3, 1, 2).float()
            return model(pixels / 127.5 - 1).numpy()

    return logits


def peak_megabytes():
    """Returns the peak of this process' memory; getrusage would count that of its parent."""
    status = Path("/proc/self/status")
    if not status.exists():
        return float("nan")
    return int(status.read_text().split("VmHWM:")[1].split()[0]) * 1024 / 1e6


def main(arguments=None):
    parser = make_parser("runtimes", __doc__)
    add = parser.add_argument
    add(
        "model",
        nargs="?",
        default="gmlp_conv_n4_32-cifar10",
        help="a run, a name, a preset, FILE.tflite",
    )
    add("--only", nargs="+", choices=RUNTIMES, metavar="NAME", help=", ".join(RUNTIMES))
    add("--batch", type=int, nargs="+", default=[1, 64], metavar="N", help="default: 1 64")
    add("--threads", type=int, nargs="+", default=[1, 2], metavar="N", help="default: 1 2")
    add("--seconds", type=float, default=1.0, help="of the calls in a round; default: 1")
    return run(parser, list_candidates, arguments, prepare)


if __name__ == "__main__":
    sys.exit(main())
