"""Training steps that run on the accelerator in compiled chunks, with the data (JAX)."""

import keras

from keras_gmlp.training.devices import split_batch


class EpochOrder(keras.callbacks.Callback):
    """Draws the order of each epoch of a `DeviceBatches` and gives the model its arrays."""

    def __init__(self, batches):
        super().__init__()
        self.batches = batches

    def on_epoch_begin(self, epoch, logs=None):
        self.batches.start_epoch(epoch)
        self.model.arrays = self.batches.arrays


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
            key, step = jax.random.wrap_key_data(plan["key"]), super().train_step

            def one(state, item):
                indices, position = item
                samples = split_batch([array[indices] for array in arrays])
                batch = augment(key, *samples, position, plan["mixing"], plan["odd"])
                logs, state = step(state, batch)
                return state, logs

            state, logs = jax.lax.scan(one, state, (plan["indices"], plan["positions"]))
            # Losses and metrics are running means: those of the last step are the chunk's.
            return {name: value[-1] for name, value in logs.items()}, state

    return DeviceModel


def build_for_training(model, *sample):
    """Creates the variables of optimizer and metrics, which Keras would build from the chunks."""
    inputs, targets, *weights = sample
    model.optimizer.build(model.trainable_variables)  # first: `evaluate` is for one device
    model.evaluate(inputs, targets, sample_weight=weights[0] if weights else None, verbose=0)
    model.reset_metrics()
