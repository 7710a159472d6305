"""Training on several devices, with `keras.distribution` (JAX)."""

import contextlib

import keras

SPLIT = {  # which dimension of a block's weights the devices of a model share
    r".*expand/kernel": (None, "model"),
    r".*expand/bias": ("model",),
    r".*shrink/kernel": ("model", None),
    r".*(query|key|value)/kernel": (None, "model", None),
    r".*(query|key|value)/bias": ("model", None),
    r".*attention_output/kernel": ("model", None, None),
}


@contextlib.contextmanager
def use_devices(devices=1, model_parallel=1):
    """Trains the models that are built inside the context on several devices.

    Build the model inside the context too: Keras places variables when it creates them. A batch
    keeps its size: each device computes a part of it. The weights after training do not depend on
    the number of devices, except for rounding.

    Args:
        devices: Number of devices of each process, or `"all"`. 1 changes nothing in a single
            process. For several processes see `join_processes`.
        model_parallel: Number of devices that shard one copy of the model, which saves memory: the
            expanded channels and the attention heads are split where their number allows it, all
            other weights are copied. It must divide `devices`: a copy stays in one process.

    Yields:
        The `keras.distribution.Distribution`, or `None` for one device.

    Raises:
        ValueError: If the backend is not JAX, a process has fewer devices, or `model_parallel`
            does not divide them. One line.

    Example:
        >>> with use_devices(1) as distribution:
        ...     print(distribution)
        None
    """
    chosen = _choose(devices, model_parallel)
    if len(chosen) == 1:
        yield None
        return
    own = {"auto_shard_dataset": False}
    if model_parallel == 1:
        distribution = _DataParallel(devices=chosen, **own)
    else:
        shape = (len(chosen) // model_parallel, model_parallel)
        mesh = keras.distribution.DeviceMesh(shape, ("batch", "model"), chosen)
        layouts = keras.distribution.LayoutMap(mesh)
        layouts.update(SPLIT)
        distribution = _ModelParallel(layout_map=layouts, batch_dim_name="batch", **own)
    with distribution.scope():
        yield distribution


def _choose(devices, model_parallel):
    """Returns the names of the devices to train on."""
    if devices != "all" and (type(devices) is not int or devices < 1):
        raise ValueError(f"devices must be a positive integer or 'all'; received {devices!r}.")
    if type(model_parallel) is not int or model_parallel < 1:
        raise ValueError(f"model_parallel must be a positive integer; received {model_parallel!r}.")
    backend = keras.backend.backend()
    if backend != "jax" and (devices, model_parallel) != (1, 1):
        raise ValueError(
            f"several devices require the JAX backend; received {backend}. Set KERAS_BACKEND=jax "
            "(--backend jax), or train on one device."
        )
    present = _list_by_process() if backend == "jax" else [[backend]]
    fewest = min(present, key=len)
    count = len(fewest) if devices == "all" else devices
    if count > len(fewest):
        place = "this machine" if len(present) == 1 else f"process {present.index(fewest)}"
        raise ValueError(
            f"devices={count}, but {place} has {len(fewest)} ({', '.join(fewest[:8])}). "
            "'all' takes all."
        )
    if count % model_parallel:
        raise ValueError(
            f"model_parallel={model_parallel} does not divide the {count} devices"
            f"{' of a process' if len(present) > 1 else ''}; choose one of "
            f"{', '.join(str(n) for n in range(1, count + 1) if count % n == 0)}."
        )
    return [name for names in present for name in names[:count]]


def _list_by_process():
    """Returns the names of each process' devices, as Keras spells them."""
    import jax

    names = [[] for _ in range(jax.process_count())]
    for device in jax.devices():
        names[device.process_index].append(f"{device.platform}:{device.id}")
    return names


class _WholeData:
    """Copies inputs to all devices if `whole` is set, and otherwise splits their batch."""

    whole = False  # set for a compiled chunk of steps, which splits its batches itself

    @property
    def shards(self):
        """Number of parts into which the devices split a batch."""
        mesh = self.device_mesh
        return mesh.shape[mesh.axis_names.index(self.batch_dim_name)]

    def get_data_layout(self, data_shape):
        return self.copied(data_shape) if self.whole else self.split(data_shape)

    def split(self, shape):
        """Returns the layout of a batch that the devices split."""
        return super().get_data_layout(shape)

    def copied(self, shape):
        """Returns the layout of a tensor that each device holds whole."""
        return keras.distribution.TensorLayout([None] * len(shape), self.device_mesh)


class _DataParallel(_WholeData, keras.distribution.DataParallel):
    pass


class _ModelParallel(_WholeData, keras.distribution.ModelParallel):
    """Copies the variables that do not split evenly."""

    def get_variable_layout(self, variable):
        layout = super().get_variable_layout(variable)
        mesh, axes, shape = self.device_mesh, layout.axes, variable.shape
        parts = dict(zip(mesh.axis_names, mesh.shape, strict=True))
        fits = len(axes) == len(shape) and all(
            axis is None or size % parts[axis] == 0 for size, axis in zip(shape, axes, strict=True)
        )
        return layout if fits else self.copied(shape)


def check_devices(devices, model_parallel, batch_size):
    """Raises a `ValueError` if `use_devices` or training with this batch size would fail."""
    count = len(_choose(devices, model_parallel))
    check_split(batch_size, count // model_parallel)


def check_split(batch_size, shards):
    """Raises a `ValueError` if a batch does not split evenly into a number of parts."""
    if batch_size % shards:
        lower = batch_size // shards * shards
        choices = " or ".join(str(n) for n in (lower, lower + shards) if n)
        raise ValueError(
            f"a batch of {batch_size} does not split evenly into the {shards} parts that devices "
            f"compute. Choose another batch_size (--batch-size), such as {choices}, or other "
            "devices."
        )


def check_place(model, distribution):
    """Raises a `ValueError` if the variables of a model are not on the devices of the context."""
    if not isinstance(distribution, _WholeData):
        raise ValueError(
            f"training takes its devices from keras_gmlp.use_devices; received a "
            f"{type(distribution).__name__}. Replace it with that context."
        )
    devices = set(distribution.device_mesh.backend_mesh.devices.flat)
    if any(set(v.value.sharding.device_set) != devices for v in model.variables):
        raise ValueError(
            f"{model.name} is not on the {len(devices)} devices: build it inside "
            "keras_gmlp.use_devices, as training."
        )


def split_batch(tensors):
    """Shards a batch over the devices of the context; call it in a compiled step."""
    distribution = keras.distribution.distribution()
    if distribution is None:
        return tensors
    import jax

    def split(tensor):
        layout = distribution.split(tensor.shape).backend_layout
        return jax.lax.with_sharding_constraint(tensor, layout)

    return jax.tree.map(split, tensors)


def copy_to_devices(arrays):
    """Copies arrays to all devices of the context, or to the default device."""
    import jax

    distribution = keras.distribution.distribution()
    if distribution is None:
        return jax.device_put(tuple(arrays))
    make = jax.make_array_from_process_local_data
    return tuple(make(distribution.copied(a.shape).backend_layout, a) for a in arrays)


@contextlib.contextmanager
def whole_batches():
    """Copies batches to all devices of the context."""
    distribution = keras.distribution.distribution()
    if distribution is None:
        yield
        return
    before, distribution.whole = distribution.whole, True
    try:
        yield
    finally:
        distribution.whole = before


@contextlib.contextmanager
def single_device():
    """Suspends the distribution of the context, so that models are built on one device."""
    distribution = keras.distribution.distribution()
    keras.distribution.set_distribution(None)
    try:
        yield
    finally:
        keras.distribution.set_distribution(distribution)


def make_distributed_class(base):
    """Returns a subclass of a model class that evaluates in `whole_batches`."""

    class DistributedModel(base):
        def evaluate(self, *args, **kwargs):
            with whole_batches():
                return super().evaluate(*args, **kwargs)

    return DistributedModel
