"""One line for what went wrong."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_gmlp.utils.errors import (
    OneLineParser,
    is_out_of_memory,
    one_line_errors,
    one_line_warnings,
    printable,
    warn,
    why_ended,
)


def test_why_a_process_ended():
    for code, log, reason in (
        (1, "Traceback:\n  somewhere\nValueError: no such file\n\n", "ValueError: no such file"),
        (3, "\n", "exit code 3"),
        (-9, "halfway\n", "ended by SIGKILL (out of memory?)"),
        (-11, "", "ended by SIGSEGV"),
    ):
        assert why_ended(code, log) == reason


def test_what_could_change_the_terminal_is_escaped():
    for text, shown in (
        ("ü 图 👩‍🔬 می‌خواهم a\xa0b.png", "ü 图 👩‍🔬 می‌خواهم a\xa0b.png"),
        ("a\nb\r\t\u2028\x85", r"a\nb\r\t\u2028\x85"),
        ("\x1b[2J\x9b2J\x7f\x00", r"\x1b[2J\x9b2J\x7f\x00"),
        ("gpj.\u202etac\ufeff\u200b", r"gpj.\u202etac\ufeff\u200b"),
        ("\udcff\U000e0001", r"\udcff\U000e0001"),
    ):
        assert printable(text) == shown


def test_error_for_want_of_memory():
    for error in (
        MemoryError(),
        RuntimeError("alloc_cpu.cpp:119 DefaultCPUAllocator: can't allocate memory: you tried to"),
        RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 8 bytes."),
        RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB."),
        tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor with shape[9]"),
        RuntimeError("bfc_arena.cc Failed to allocate memory for requested buffer of size 8"),
        RuntimeError("std::bad_alloc"),
    ):
        assert is_out_of_memory(error)
        assert not is_out_of_memory(ValueError("damaged after the memory of 3 tensors"))


def batches_that_fail(after):
    """Endless batches, of which the one after so many cannot be read."""

    def read():
        for i in range(100):
            if i == after:
                raise ValueError("photo.png: damaged.")
            yield np.ones((2, 3), "float32"), np.zeros((2, 1), "float32")

    shapes = (tf.TensorSpec((2, 3), tf.float32), tf.TensorSpec((2, 1), tf.float32))
    return tf.data.Dataset.from_generator(read, output_signature=shapes)


def test_error_of_a_batch_is_one_line():
    """Keras on JAX answers one in the first step of an epoch with a TypeError of its clean-up."""
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(use_ema=True), "mse", jit_compile=False)
    with pytest.raises(ValueError, match=r"photo\.png: damaged") as error, one_line_errors():
        model.fit(batches_that_fail(1), epochs=3, steps_per_epoch=2, shuffle=False, verbose=0)
    assert "\n" not in str(error.value)


def call_nothing(while_handling=None):
    """Raises a `TypeError` as clean-up code does, after another error or on its own."""
    nothing = None
    try:
        if while_handling:
            raise while_handling
    finally:
        nothing()


def test_error_of_a_clean_up_gives_way_to_the_first():
    with pytest.raises(KeyboardInterrupt), one_line_errors():
        call_nothing(while_handling=KeyboardInterrupt())
    with pytest.raises(TypeError, match="'NoneType' object is not callable"), one_line_errors():
        call_nothing()
    with pytest.raises(KeyError, match="here"), one_line_errors():
        raise KeyError("here")


def test_wrong_usage_is_one_line_with_the_nearest_option(capsys):
    parser = OneLineParser(prog="program")
    parser.add_argument("run", metavar="RUN")
    parser.add_argument("--accuracy", default="")
    parser.add_argument("--out", metavar="DIR")
    for given, expected in (
        (["a", "--acuracy", "1"], "Did you mean --accuracy?"),
        (["a", "my--acuracy"], "unrecognized arguments: my--acuracy"),
        ([""], "RUN is empty"),
        (["a", "--out", ""], "--out is empty"),
    ):
        with pytest.raises(SystemExit, match="2"):
            parser.parse_args(given)
        error = capsys.readouterr().err
        assert error.startswith("program: error: ")
        assert (expected in error, error.count("\n")) == (True, 1)


@pytest.mark.filterwarnings("default")
def test_a_warning_of_the_data_is_one_line_once(capsys):
    with one_line_warnings("program", lambda warning: str(warning).upper()):
        for _ in range(2):
            warn("rows")
    assert capsys.readouterr().err == "program: warning: ROWS\n"
