"""Callbacks: when training stops, what the clock measures, whose random numbers change."""

import contextlib
import signal
import time

import keras
import numpy as np
import pytest

from keras_gmlp.training.callbacks import (
    Clock,
    DivergedError,
    HistoryWriter,
    ReseedDropout,
    StopOnInterrupt,
    StopWhenDiverged,
    private_generator,
)
from keras_gmlp.training.checkpoints import RunCheckpoint

STEPS = 4


def linear_model(learning_rate=0.0):
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(learning_rate), loss="mse", jit_compile=False)
    return model


def fit(model, callbacks, inputs=None, targets=None, **options):
    inputs = np.ones((STEPS, 2), "float32") if inputs is None else inputs
    targets = np.ones((STEPS, 1), "float32") if targets is None else targets
    return model.fit(
        inputs, targets, batch_size=1, shuffle=False, verbose=0, callbacks=callbacks, **options
    )


def test_loss_that_is_not_a_number_ends_the_run_before_its_epoch_is_saved():
    epochs = []  # that a callback that saves would have seen
    recorded = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: epochs.append(epoch))
    for step, value in ((1, np.nan), (STEPS, np.inf)):
        targets = np.ones((STEPS, 1), "float32")
        targets[step - 1] = value
        with pytest.raises(DivergedError, match=rf"epoch 1, by step [{step}-{STEPS}]"):
            fit(linear_model(), [StopWhenDiverged(), recorded], targets=targets)
    inputs = np.zeros((STEPS, 2), "float32")
    inputs[-1] = 1e30  # its gradient overflows in the last step
    model = linear_model(1.0)
    model.layers[0].kernel.assign(np.full((2, 1), 1e-20))
    validation = {"validation_data": (np.ones((1, 2)), np.ones((1, 1)))}
    with pytest.raises(DivergedError, match="after the last step"):
        fit(model, [StopWhenDiverged(), recorded], inputs, np.zeros((STEPS, 1)), **validation)
    assert epochs == []


def test_callbacks_leave_keras_dispatch_asynchronous(tmp_path):
    callbacks = [  # those of a run
        Clock(),
        keras.callbacks.SwapEMAWeights(),
        ReseedDropout(0),
        StopWhenDiverged(),
        HistoryWriter(tmp_path),
        RunCheckpoint(tmp_path),
    ]
    asynchronous = keras.callbacks.CallbackList(callbacks)._async_train
    assert asynchronous is (keras.backend.backend() != "tensorflow")


def test_clock_measures_training_without_validation(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])

    class Slow(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            now[0] += 0.1

        def on_test_begin(self, logs=None):
            now[0] += 0.5

    validation = (np.ones((1, 2)), np.ones((1, 1)))
    for options in ({}, {"validation_data": validation}):
        history = fit(linear_model(), [Clock(), Slow()], epochs=2, **options)
        assert history.history["seconds"] == pytest.approx(2 * [0.1 * STEPS])


def test_generators_of_the_process_are_left_alone():
    def state():
        numbers = [np.random.get_state()[1].tobytes()]
        if keras.backend.backend() == "torch":
            import torch

            numbers.append(torch.get_rng_state().numpy().tobytes())
        return numbers

    model = linear_model()
    before = state()
    with private_generator():
        fit(model, [ReseedDropout(1)])
    assert state() == before


class PressesCtrlC(keras.callbacks.Callback):
    """Has a Ctrl-C come in the middle of a step; counts the steps that begin."""

    def __init__(self, step):
        super().__init__()
        self.step, self.begun = step, 0

    def on_train_batch_begin(self, batch, logs=None):
        self.begun += 1
        if self.begun == self.step:
            signal.raise_signal(signal.SIGINT)  # raises nothing here


@pytest.fixture
def heard():
    """Handles Ctrl-C as in a terminal: a background job begins without it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("step", [1, STEPS, 2 * STEPS])
def test_ctrl_c_ends_training_between_two_steps(step):
    presses, epochs = PressesCtrlC(step), []
    recorded = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: epochs.append(epoch))
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), StopOnInterrupt() as interrupt:
        fit(linear_model(), [interrupt, presses, recorded], epochs=2)
    assert presses.begun == step
    assert epochs == list(range(step // STEPS))  # a finished epoch is saved
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.once
@pytest.mark.usefixtures("heard")
def test_error_that_a_ctrl_c_led_to_is_a_ctrl_c_and_a_second_one_raises_at_once():
    def fail():
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        raise TypeError("Failed to convert elements of (None,) to Tensor.")

    with pytest.raises(KeyboardInterrupt), StopOnInterrupt():
        fail()

    def press_twice():
        with StopOnInterrupt():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            raise AssertionError("the second Ctrl-C did not raise")

    with pytest.raises(KeyboardInterrupt):
        press_twice()


@pytest.mark.once
def test_history_has_a_row_for_each_epoch_and_is_named_where_the_disk_is_full(tmp_path):
    for epoch in range(2):  # a run that resumes begins with a new callback
        HistoryWriter(tmp_path).on_epoch_end(epoch, {"val_loss": 0.25, "loss": 0.5})
    path = tmp_path / "history.csv"
    assert path.read_text().splitlines() == ["epoch,loss,val_loss", "0,0.5,0.25", "1,0.5,0.25"]
    path.unlink()
    path.symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left") as error:
        HistoryWriter(tmp_path).on_epoch_end(2, {})
    assert error.value.filename == str(path)
