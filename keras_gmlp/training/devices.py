"""The devices and the processes of a training, with `keras.distribution` (JAX)."""

import contextlib
import json
import zlib
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np


@contextlib.contextmanager
def use_devices(devices: int | str = 1) -> Iterator[Any]:
    """Trains the models that are built inside the context on several devices.

    Build the model inside the context too: Keras places variables when it creates them. A batch
    keeps its size: each device computes a part of it. The weights after training do not depend on
    the number of devices, except for rounding. Several processes train one model if each begins
    with `keras.distribution.initialize`.

    Args:
        devices: Number of devices of each process, or `"all"`. 1 changes nothing in a single
            process.

    Yields:
        The `keras.distribution.Distribution`, or `None` for one device.

    Raises:
        ValueError: If the backend is not JAX, or a process has fewer devices. One line.
    """
    chosen = _choose_devices(devices)
    if len(chosen) == 1:
        yield None
        return
    with _Devices(devices=chosen, auto_shard_dataset=False).scope():
        yield keras.distribution.distribution()


def _choose_devices(devices):
    """Returns the names of the devices to train on, as Keras spells them."""
    backend = keras.backend.backend()
    if backend != "jax":
        if devices != 1:
            raise ValueError(
                f"several devices require the JAX backend; received {backend}. Set "
                "KERAS_BACKEND=jax (--backend jax), or train on one device."
            )
        return [backend]
    import jax

    present = [[] for _ in range(jax.process_count())]
    for device in jax.devices():
        present[device.process_index].append(f"{device.platform}:{device.id}")
    fewest = min(map(len, present))
    count = fewest if devices == "all" else devices
    if not 1 <= count <= fewest:
        raise ValueError(
            f"devices={devices}, but each process has {fewest}. Give a number from 1, or 'all'."
        )
    return [name for names in present for name in names[:count]]


class _Devices(keras.distribution.DataParallel):
    """Splits the batches of a `make_splitting_class`; copies other inputs to all devices."""

    splits = False

    def get_data_layout(self, data_shape):
        return self.split(data_shape) if self.splits else self.copied(data_shape)

    def split(self, shape):
        """Returns the layout of a batch that the devices split."""
        return super().get_data_layout(shape)

    def copied(self, shape):
        """Returns the layout of a tensor that each device holds whole."""
        return keras.distribution.TensorLayout([None] * len(shape), self.device_mesh)

    @contextlib.contextmanager
    def splitting(self, splits):
        """Splits or copies the inputs of the context."""
        before, self.splits = self.splits, splits
        try:
            yield
        finally:
            self.splits = before


def make_splitting_class(base, distribution):
    """Returns a subclass of a model class whose `fit` splits each batch among the devices."""

    # The last batch of an evaluation need not split evenly.
    class SplittingModel(base):
        def fit(self, *args, **kwargs):
            with distribution.splitting(True):
                return super().fit(*args, **kwargs)

        def evaluate(self, *args, **kwargs):
            with distribution.splitting(False):
                return super().evaluate(*args, **kwargs)

    return SplittingModel


def split_batch(tensors):
    """Shards a batch over the devices of the context; call it in a compiled step."""
    distribution = keras.distribution.distribution()
    if distribution is None:
        return tensors
    shard = keras.distribution.distribute_tensor
    return [shard(tensor, distribution.split(tensor.shape)) for tensor in tensors]


def copy_to_devices(arrays):
    """Copies arrays to all devices of the context, or to the default device."""
    import jax

    distribution = keras.distribution.distribution()
    if distribution is None:
        return jax.device_put(tuple(arrays))
    make = jax.make_array_from_process_local_data
    return tuple(make(distribution.copied(a.shape).backend_layout, a) for a in arrays)


@contextlib.contextmanager
def single_device():
    """Suspends the distribution of the context, so that models are built on one device."""
    distribution = keras.distribution.distribution()
    keras.distribution.set_distribution(None)
    try:
        yield
    finally:
        keras.distribution.set_distribution(distribution)


def find_process():
    """Returns the index of this process, from 0, and the number of processes."""
    if keras.backend.backend() != "jax":
        return 0, 1
    import jax

    return jax.process_index(), jax.process_count()


def is_main():
    """Returns whether this is the process that writes for all."""
    return find_process()[0] == 0


def agree(number=0):
    """Returns the integer that the main process gives, in all; they wait for each other."""
    return _gather(number)[0]


def check_agreement(settings):
    """Raises a `ValueError` in every process if their settings differ: they would mix silently."""
    text = json.dumps(settings, sort_keys=True)
    if len(set(_gather(zlib.crc32(text.encode()) // 2))) > 1:
        raise ValueError(
            "the processes have different settings or data; give all of them the same command, "
            "except for --process."
        )


def _gather(number):
    """Returns the int32 numbers that the processes give, in their order."""
    if find_process()[1] == 1:
        return [number]
    from jax.experimental import multihost_utils

    return multihost_utils.process_allgather(np.int32(number)).tolist()
