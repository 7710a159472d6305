import os

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import pytest

from keras_gmlp.benchmark.runtimes import import_timm

pytest.register_assert_rewrite("check_layer")


@pytest.fixture(scope="session")
def timm():
    try:
        return import_timm()
    except ImportError:
        pytest.skip("timm is not installed")


@pytest.fixture(autouse=True)
def seed():
    keras.utils.set_random_seed(0)
