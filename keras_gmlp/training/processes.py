"""Training in several processes, on one machine or on several (JAX)."""

import json
import socket
import time

import numpy as np

from keras_gmlp.training.recipes import differences
from keras_gmlp.utils.errors import first_line

JOIN_TIMEOUT = 60  # seconds that a process waits for the others
LOST_AFTER = 30  # seconds without a sign of life after which a process is lost


class DisagreementError(ValueError):
    """Raised when the processes of a training have different settings or data."""


def join_processes(coordinator, processes, process):
    """Joins the processes of a training; call it before anything else uses JAX.

    Args:
        coordinator: `"HOST:PORT"`, at which all processes reach process 0.
        processes: Number of processes.
        process: Number of this process, from 0.

    If the others do not come within 60 s, or one of them is lost later, JAX ends this process with
    a message; `apps/train.py` turns that into one line.

    Raises:
        ValueError: If the backend is not JAX or a number is out of range. One line.
        RuntimeError: If process 0 does not answer within 60 s. One line.
    """
    import keras

    if processes < 1:
        raise ValueError(f"processes must be at least 1; received {processes}.")
    if not 0 <= process < processes:
        raise ValueError(
            f"process must be from 0 to {processes - 1}, below the number of processes; received "
            f"{process}."
        )
    host, _, port = coordinator.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise ValueError(f"coordinator must be HOST:PORT; received {coordinator!r}.")
    if keras.backend.backend() != "jax":
        raise ValueError(
            f"several processes require the JAX backend; received {keras.backend.backend()}. Set "
            "KERAS_BACKEND=jax (--backend jax)."
        )
    import jax
    from jax.experimental import multihost_utils

    if process:
        _await(host, int(port))
    times = {"initialization_timeout": JOIN_TIMEOUT, "heartbeat_timeout_seconds": LOST_AFTER}
    jax.distributed.initialize(coordinator, processes, process, **times)
    # Gloo connects at the first exchange, and waits 30 s for it: exchange before the data load.
    multihost_utils.sync_global_devices("joined")


def _await(host, port):
    """Waits until process 0 answers; JAX would end this process if it did not."""
    end = time.monotonic() + JOIN_TIMEOUT
    while True:
        try:
            socket.create_connection((host.strip("[]"), port), timeout=5).close()
            return
        except OSError as error:
            if time.monotonic() > end:
                raise RuntimeError(
                    f"no coordinator answers at {host}:{port} ({first_line(error)}): start process "
                    "0 on that host, with the same coordinator, within a minute of the others."
                ) from None
        time.sleep(0.2)


def process_number():
    """Returns the number of this process, from 0."""
    return _count()[0]


def process_count():
    """Returns the number of processes."""
    return _count()[1]


def _count():
    import keras  # here, so that a program refuses wrong options before

    if keras.backend.backend() != "jax":
        return 0, 1
    import jax

    return jax.process_index(), jax.process_count()


def run_once(work):
    """Has process 0 work alone; returns the result in all processes."""
    if process_count() == 1:
        return work()
    from jax.experimental import multihost_utils

    failed, none, value = -1, -2, -1
    error = None
    if process_number() == 0:
        try:
            value = work()
            value = none if value is None else value
        except BaseException as raised:  # the others must not wait for ever
            error = raised
    value = int(multihost_utils.broadcast_one_to_all(np.int32(value)))
    if error is not None:
        raise error
    if value == failed:
        raise RuntimeError("process 0 failed; its message says why.")
    return None if value == none else value


def check_agreement(settings):
    """Raises a `DisagreementError` in every process if the settings of the processes differ."""
    if process_count() == 1:
        return
    from jax.experimental import multihost_utils

    text = np.frombuffer(json.dumps(settings, sort_keys=True).encode(), "uint8")
    length = int(multihost_utils.broadcast_one_to_all(np.int32(len(text))))
    first = multihost_utils.broadcast_one_to_all(np.resize(text, length)).tobytes()
    agree = multihost_utils.process_allgather(np.int32(first == text.tobytes()))
    if agree.all():
        return
    differing = differences(json.loads(first), settings)
    numbers = ", ".join(str(number) for number in np.flatnonzero(agree == 0))
    reason = f" ({'; '.join(differing)})" if differing else ""
    raise DisagreementError(
        f"process {numbers} has other settings or data than process 0{reason}; give all processes "
        "the same command, except for --process."
    )
