"""Versions and hardware for the record of a run."""

import os
import platform
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
