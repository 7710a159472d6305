"""Versions and hardware for the record of a run."""

import ctypes
import importlib.util
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

from keras_gmlp.utils.errors import why_ended


def environment():
    """Returns versions, backend and hardware as a dict for JSON."""
    import keras  # here, so that a look for a package imports no Keras

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
    from importlib import metadata  # here, because it takes a tenth of the start of classify.py

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
    found = re.search(r"^model name\s*: (.*)", info.read_text() if info.exists() else "", re.M)
    return found[1].strip() if found else platform.processor() or platform.machine()


def accelerators(devices=None):
    """Returns the names of GPUs and TPUs among devices, by default those of the backend."""
    names = _devices() if devices is None else devices
    return [name for name in dict.fromkeys(names) if "cpu" not in name.lower()]


def _devices():
    import keras

    backend = keras.backend.backend()
    if backend == "jax":
        import jax

        return [device.device_kind for device in jax.devices()]
    if backend == "torch":
        import torch

        return [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())] or ["cpu"]
    import tensorflow as tf

    return [device.name for device in tf.config.list_physical_devices()]


def keep_freed_memory():
    """Makes glibc keep freed memory for later arrays, for the rest of the process."""
    trim_threshold, mmap_threshold = -1, -3  # of glibc's malloc.h
    most = 2**31 - 1  # bytes; the thresholds are C ints
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # in this order: macOS and musl, others, Windows
        return False
    return all([mallopt(mmap_threshold, most), mallopt(trim_threshold, most)])


def keep_compilations():
    """Lets JAX keep what it compiles for an accelerator, for the next process."""
    import keras

    # On some processors JAX 0.10 refuses each file that it has kept, with an error.
    if keras.backend.backend() != "jax" or not accelerators():
        return
    import jax

    cache = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    # A variable of JAX may name another folder. A relative one would be in the working folder.
    if cache.is_absolute() and not jax.config.jax_compilation_cache_dir:
        jax.config.update("jax_compilation_cache_dir", str(cache / "keras_gmlp"))


def is_installed(package):
    """Returns whether a package can be imported; imports nothing."""
    return importlib.util.find_spec(package) is not None


def require(package, job, extra):
    """Imports a package that a job requires."""
    if not is_installed(package):
        raise ImportError(f"{job} requires {package}; install it: pip install -e '.[{extra}]'")
    return importlib.import_module(package)


def run_on(backend, module, *arguments, cpu=True):
    """Runs a module as a program with Keras on a backend; returns what it prints."""
    settings = {"TF_CPP_MIN_LOG_LEVEL": "2", "KERAS_BACKEND": backend}
    settings |= {"KERAS_TORCH_DEVICE": "cpu"} if cpu else {}  # or an accelerator, if there is one
    # With -P Python imports nothing from the working folder, which may be a stranger's.
    places = [str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH")]
    settings["PYTHONPATH"] = os.pathsep.join(filter(None, places))
    result = subprocess.run(
        [sys.executable, "-P", "-m", module, *map(str, arguments)],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        reason = why_ended(result.returncode, result.stderr)
        raise RuntimeError(f"Keras on {backend}: {reason}")
    return result.stdout
