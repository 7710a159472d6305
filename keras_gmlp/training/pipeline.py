"""Where training data stay and change, and the model that `fit` then trains."""

import contextlib

import keras
import numpy as np

from keras_gmlp.data.batches.device import DeviceBatches
from keras_gmlp.data.batches.order import Position
from keras_gmlp.data.run_folder import Run
from keras_gmlp.models.torch_convolutions import channels_stay_last
from keras_gmlp.objectives.optimizers import freeze_backbone, make_optimizer
from keras_gmlp.tasks.teacher import make_taught_class
from keras_gmlp.training.callbacks import (
    ReseedDropout,
    StopOnInterrupt,
    StopWhenDiverged,
    private_generator,
)
from keras_gmlp.training.devices import (
    copy_to_devices,
    find_process,
    make_splitting_class,
    split_batch,
)
from keras_gmlp.training.run_directory import has_progress
from keras_gmlp.utils.environment import accelerators
from keras_gmlp.utils.errors import one_line_errors

ADAPTED = 5_000  # training samples that weights are computed from, at most


def choose_pipeline(recipe, data, directory=None):
    """Returns the pipeline of a recipe: `"device"` or `"host"`."""
    backend, chosen, complete = keras.backend.backend(), recipe.pipeline, False
    if chosen == "auto" and directory is not None and has_progress(directory):
        # The other pipeline rounds in other places.
        run = Run(directory)
        chosen, complete = run.recipe.get("pipeline", "host"), run.complete
    possible = backend == "jax" and recipe.task.fits_device(data)
    if chosen == "auto":
        return "device" if possible and (accelerators() or find_process()[1] > 1) else "host"
    if chosen == "device" and not possible and not complete:
        raise ValueError(
            "pipeline='device' requires JAX, a task with a form for devices, and data that fit in "
            f"memory; the backend is {backend}. Set KERAS_BACKEND=jax (--backend jax), or choose "
            "pipeline='host' (--set pipeline=host; a run that has begun also requires --restart)."
        )
    return chosen


def prepare_fit(model, data, recipe):
    """Compiles a model; returns the one that trains and, for the device, the `DeviceBatches`."""
    task, trained, batches, kind = recipe.task, model, None, keras.Model
    batch_size, steps = recipe.count_batches(data)
    distribution = keras.distribution.distribution()
    if getattr(task, "teacher", None) is not None:
        kind = make_taught_class(task, model)
    if distribution is not None:
        parts = distribution.device_mesh.shape[0]
        if batch_size % parts:
            raise ValueError(
                f"a batch of {batch_size} does not split evenly into the {parts} parts that "
                f"devices compute; choose a multiple of {parts} (--batch-size), or other devices."
            )
    elif find_process()[1] > 1:  # each would train a model of its own
        raise ValueError(
            "several processes train one model; build it and train it inside "
            "keras_gmlp.use_devices."
        )
    if recipe.pipeline == "device":
        arrays, draw, augment = task.device_data(data, recipe.seed, recipe.epochs)
        order = {"seed": recipe.seed, "steps": steps}
        batches = DeviceBatches(arrays, draw, batch_size, **order, place=copy_to_devices)
        kind = make_device_class(kind, augment)
    elif distribution is not None:
        kind = make_splitting_class(kind, distribution)
    if kind is not keras.Model:
        trained = kind(model.inputs, model.outputs, name=model.name)
    if batches is not None:
        trained.arrays = batches.arrays
    if recipe.freeze:
        freeze_backbone(trained)
    optimizer = make_optimizer(recipe, steps * recipe.epochs)
    if recipe.precision == "mixed_float16":  # Keras reads the model's policy, ours is in the layers
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
    task.compile(trained, optimizer, data)
    return trained, batches


def fit(model, batches, data, recipe, callbacks, epoch=0, validate=False, verbose="auto"):
    """Trains what `prepare_fit` returned, from an epoch on; returns the `History`."""
    validation = recipe.task.validation_batches(data)
    with (
        StopOnInterrupt() as interrupt,
        one_line_errors(),
        private_generator(),
        _unfused_attention(),
        channels_stay_last(),
    ):
        own = [interrupt, ReseedDropout(recipe.seed), StopWhenDiverged()]
        length = None
        if batches is None:
            batches, length = _make_batches(data, recipe, epoch)
        else:
            start = batches.start_epoch
            own.append(keras.callbacks.LambdaCallback(lambda epoch, logs: start(epoch)))
        # Else `fit` would read a batch to create the variables of optimizer and metrics: that of
        # the training batches counts as an epoch, and that of a `DeviceBatches` is a chunk.
        model.optimizer.build(model.trainable_variables)
        model.evaluate(validation, steps=1, verbose=0)
        return model.fit(
            batches,
            steps_per_epoch=length,
            epochs=recipe.epochs,
            initial_epoch=epoch,
            validation_data=validation if validate else None,
            callbacks=[*own, *callbacks],
            shuffle=False,  # the batches are shuffled already
            verbose=verbose,
        )


def _make_batches(data, recipe, epoch):
    """Returns the training batches from an epoch on, and how many of endless ones make an epoch."""
    part, (batch_size, steps) = find_process(), recipe.count_batches(data)
    position = Position(recipe.seed, epoch, epoch * steps, recipe.epochs, part)
    batches = recipe.task.training_batches(data, batch_size, position)
    if not isinstance(batches, keras.utils.PyDataset):
        return batches, None
    if part[1] > 1:
        batches = _OwnRows(batches, *part)
    return batches, steps if batches.num_batches is None else None


class _OwnRows(keras.utils.PyDataset):
    """The rows of each batch that one of several processes trains on."""

    def __init__(self, batches, process, processes):
        super().__init__()
        self.batches, self.process, self.processes = batches, process, processes

    num_batches = property(lambda self: self.batches.num_batches)

    def __getitem__(self, index):
        def take(array):
            rows = len(array) // self.processes
            return array[self.process * rows : (self.process + 1) * rows]

        return keras.tree.map_structure(take, self.batches[index])


def _unfused_attention():
    """Returns a context for PyTorch on a CPU, where fused attention slows a ViT 1.3 to 2 times."""
    if keras.backend.backend() == "torch":
        import torch
        from torch.nn.attention import SDPBackend, sdpa_kernel

        if not torch.cuda.is_available():
            return sdpa_kernel(SDPBackend.MATH)
    return contextlib.nullcontext()


def make_device_class(base, augment):
    """Returns a subclass of a model class that trains on the items of a `DeviceBatches`."""
    import jax

    class DeviceModel(base):
        arrays = None  # the samples, on the devices

        def make_train_function(self, force=False):
            if self.train_function is not None and not force:
                return
            super().make_train_function(force=True)
            step = self.train_function
            # `fit` would copy the arrays again, and cannot if they are on several machines.
            self.train_function = lambda state, plans: step(
                state, iter([(self.arrays, next(plans))])
            )

        def train_step(self, state, data):
            arrays, plan = data
            step = super().train_step

            def one(state, item):
                indices, numbers = item
                samples = split_batch([array[indices] for array in arrays])
                logs, state = step(state, augment(*samples, numbers))
                return state, logs

            state, logs = jax.lax.scan(one, state, (plan["indices"], plan["numbers"]))
            # Losses and metrics are running means: those of the last step are the chunk's.
            return {name: value[-1] for name, value in logs.items()}, state

    return DeviceModel


def adapt_layers(model, task, data):
    """Computes weights from training data, such as whitening filters; returns the layers' names."""
    names = []
    for layer in model.layers:
        if not hasattr(layer, "adapt") or getattr(layer, "adapted", True):
            continue
        before = keras.Model(model.input, layer.input)
        batches = task.evaluation_batches(data, "train", ADAPTED)
        # JAX takes no tensors of TensorFlow.
        arrays = (keras.tree.map_structure(np.asarray, inputs) for inputs, *_ in batches)
        layer.adapt(map(before.predict_on_batch, arrays))
        names.append(layer.name)
    return names
