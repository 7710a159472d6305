"""Where training data stay and change, and the model that `fit` then trains."""

import contextlib

import keras

from keras_gmlp.data.batches.device import DeviceBatches
from keras_gmlp.data.batches.share import Position, Share
from keras_gmlp.data.run_folder import Run
from keras_gmlp.models.torch_convolutions import channels_stay_last
from keras_gmlp.objectives.optimizers import freeze_backbone, make_optimizer
from keras_gmlp.training.callbacks import private_generator
from keras_gmlp.training.device_loop import build_for_training, make_device_class
from keras_gmlp.training.devices import (
    check_place,
    check_split,
    copy_to_devices,
    make_distributed_class,
)
from keras_gmlp.training.processes import process_count, process_number
from keras_gmlp.training.run_directory import has_progress
from keras_gmlp.utils.environment import accelerators
from keras_gmlp.utils.errors import one_line_errors


def choose_pipeline(recipe, data, directory=None):
    """Returns the pipeline of a recipe: `"device"` or `"host"`."""
    backend, chosen, complete = keras.backend.backend(), recipe.pipeline, False
    if chosen == "auto" and directory is not None and has_progress(directory):
        # The other pipeline would draw other random numbers.
        run = Run(directory)
        chosen, complete = run.recipe.get("pipeline", "host"), run.complete
    if chosen == "auto":
        can = backend == "jax" and recipe.task.fits_device(data)
        return "device" if can and (accelerators() or process_count() > 1) else "host"
    if chosen == "device" and not complete:
        if backend != "jax":
            raise ValueError(
                f"pipeline='device' requires the JAX backend; received {backend}. Set "
                "KERAS_BACKEND=jax (--backend jax), or choose pipeline='host' (--set "
                "pipeline=host; a run that has begun also requires --restart)."
            )
        if not recipe.task.fits_device(data):
            raise ValueError(
                "pipeline='device' requires a task with a form for devices, and data that fit in "
                "memory. Choose pipeline='host'."
            )
    return chosen


def prepare_fit(model, data, recipe, batch_size):
    """Compiles a model for a recipe."""
    task, trained, batches = recipe.task, model, None
    kind, distribution = task.training_class(model), keras.distribution.distribution()
    if distribution is None and process_count() > 1:
        raise ValueError(
            f"{process_count()} processes train one model; build it and train it inside "
            "keras_gmlp.use_devices."
        )
    if distribution is not None:
        check_place(model, distribution)
        check_split(batch_size, distribution.shards)
        distribution.whole = recipe.pipeline == "device"
        kind = make_distributed_class(kind)
    if recipe.pipeline == "device":
        arrays, augment, mixed_epochs = task.device_data(data)
        steps = task.size(data) // batch_size
        order = {"seed": recipe.seed, "mixed_epochs": mixed_epochs(recipe.epochs), "steps": steps}
        batches = DeviceBatches(arrays, batch_size, **order, place=copy_to_devices)
        kind = make_device_class(kind, augment)
    if kind is not keras.Model:
        trained = kind(model.inputs, model.outputs, name=model.name)
    if recipe.freeze:
        freeze_backbone(trained)
    optimizer = make_optimizer(recipe, task.size(data) // batch_size * recipe.epochs)
    if recipe.precision == "mixed_float16":  # Keras reads the model's policy, ours is in the layers
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
    task.compile(trained, optimizer, data)
    if batches is not None:
        trained.arrays = batches.arrays
        build_for_training(trained, *task.device_sample(data, batches.arrays))
    return trained, batches


def make_batches(batches, data, recipe, batch_size, initial_epoch, step=0):
    """Returns the training batches from a step of an epoch on, and how many make an epoch."""
    if batches is not None:
        batches.first_step = step
        return batches, None
    task, share = recipe.task, Share(process_number(), process_count())
    position = Position(recipe.seed, initial_epoch, step, recipe.epochs, share)
    batches = task.training_batches(data, batch_size, position)
    return batches, task.size(data) // batch_size - step if task.endless else None


@contextlib.contextmanager
def fit_context():
    """Encloses `fit`: errors of one line, and PyTorch's own settings."""
    with one_line_errors(), private_generator(), _unfused_attention(), channels_stay_last():
        yield


def _unfused_attention():
    """Returns a context for PyTorch on a CPU, where fused attention slows a ViT 1.3 to 2 times."""
    if keras.backend.backend() == "torch":
        import torch
        from torch.nn.attention import SDPBackend, sdpa_kernel

        if not torch.cuda.is_available():
            return sdpa_kernel(SDPBackend.MATH)
    return contextlib.nullcontext()
