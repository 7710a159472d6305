"""Versions and hardware for the record of a run."""

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path

import keras


def environment():
    """Returns versions, backend and hardware as a dict for JSON."""
    packages = ("keras-gmlp", "keras", "tensorflow-cpu", "tensorflow", "jax", "torch", "keras-cv")
    return {
        "backend": keras.backend.backend(),
        "devices": _devices(),
        "processor": processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": installed_versions(packages),
    }


def installed_versions(packages):
    """Returns the versions of the installed ones among some packages, by name."""
    versions = {}
    for name in packages:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def processor():
    """Returns the name of the processor, as precise as the system reports it."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def accelerators(devices=None):
    """Returns the names of GPUs and TPUs among devices, by default those of the backend."""
    names = _devices() if devices is None else devices
    return [name for name in dict.fromkeys(names) if "cpu" not in name.lower()]


def visible_gpus():
    """Returns the NVIDIA GPUs that a child process can use, as `CUDA_VISIBLE_DEVICES` names them.

    This process does not open them: JAX would reserve their memory.
    """
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is not None:
        return [name.strip() for name in chosen.split(",") if name.strip() not in ("", "-1")]
    try:
        result = subprocess.run(["nvidia-smi", "-L"], capture_output=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):  # no driver, or no GPU
        return []
    lines = result.stdout.decode(errors="replace").splitlines()
    return [str(number) for number in range(sum(line.startswith("GPU ") for line in lines))]


def _devices():
    backend = keras.backend.backend()
    if backend == "jax":
        import jax

        return [device.device_kind for device in jax.devices()]
    if backend == "torch":
        import torch

        return [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())] or ["cpu"]
    import tensorflow as tf

    return [device.name for device in tf.config.list_physical_devices()]
