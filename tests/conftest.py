import os

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import importlib
import warnings

import pytest
from load_app import load_app

# Keras is imported inside fixtures, because the process that distributes the tests loads this file.
pytest.register_assert_rewrite("check_layer", "other_backend")

# One process runs all tests of a file. These files start first, so that no process is still busy
# with one of them when the others are done.
LONGEST = ["test_train", "test_formats", "test_apps", "test_sweep", "test_backends"]


def pytest_collection_modifyitems(items):
    rank = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path.stem, len(LONGEST)))


@pytest.fixture(scope="session")
def timm():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # from timm's imports
        try:
            load_app("timm_worker").import_torchvision()
            return importlib.import_module("timm")
        except ImportError:
            pytest.skip("timm is not installed")


@pytest.fixture
def saved_figures(monkeypatch):
    """The matplotlib figures of all pictures that a test saves, in order."""
    from keras_gmlp.utils import plotting

    figures, save = [], plotting.save
    monkeypatch.setattr(plotting, "save", lambda f, path: figures.append(f) or save(f, path))
    return figures


@pytest.fixture(autouse=True)
def seed():
    import keras

    keras.utils.set_random_seed(0)
