"""One line for what went wrong."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_gmlp.utils.errors import (
    is_out_of_memory,
    one_line_errors,
    one_line_warnings,
    printable,
    warn,
)


def test_what_could_change_the_terminal_is_escaped():
    for text, shown in (
        ("ü 图 👩‍🔬 می‌خواهم a\xa0b.png", "ü 图 👩‍🔬 می‌خواهم a\xa0b.png"),
        ("a\nb\r\t\u2028\x85", r"a\nb\r\t\u2028\x85"),
        ("\x1b[2J\x9b2J\x7f\x00", r"\x1b[2J\x9b2J\x7f\x00"),
        ("gpj.\u202etac\ufeff\u200b\udcff", r"gpj.\u202etac\ufeff\u200b\udcff"),
    ):
        assert printable(text) == shown


def test_lack_of_memory_in_any_class_of_error():
    for error in (
        MemoryError(),
        RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 8 bytes."),
        RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB."),
        tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor with shape[9]"),
        RuntimeError("std::bad_alloc"),
    ):
        assert is_out_of_memory(error)
    assert not is_out_of_memory(ValueError("damaged after the memory of 3 tensors"))


def test_error_of_a_batch_is_one_line():
    """Keras on JAX answers one in the first step of an epoch with a TypeError of its clean-up."""

    def read():
        yield np.ones((2, 3), "float32"), np.zeros((2, 1), "float32")
        raise ValueError("photo.png: damaged.")

    shapes = (tf.TensorSpec((2, 3), tf.float32), tf.TensorSpec((2, 1), tf.float32))
    batches = tf.data.Dataset.from_generator(read, output_signature=shapes)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(use_ema=True), "mse", jit_compile=False)
    with pytest.raises(ValueError, match=r"^photo\.png: damaged\.$"), one_line_errors():
        model.fit(batches, epochs=3, steps_per_epoch=2, shuffle=False, verbose=0)


@pytest.mark.filterwarnings("default")
def test_a_warning_of_the_data_is_one_line_once(capsys):
    with one_line_warnings("program", lambda warning: str(warning).upper()):
        for _ in range(2):
            warn("rows")
    assert capsys.readouterr().err == "program: warning: ROWS\n"
