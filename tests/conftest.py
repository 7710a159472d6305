import os

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import pytest

pytest.register_assert_rewrite("check_layer")


@pytest.fixture(autouse=True)
def seed():
    keras.utils.set_random_seed(0)
