import os

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import gc
import importlib
import warnings

import pytest
from load_app import load_app

BACKEND = os.environ["KERAS_BACKEND"]  # programs change the variable

# JAX makes eight devices of a processor, for the tests of several.
os.environ["XLA_FLAGS"] = (
    f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
)

# Keras is imported inside fixtures, because the process that distributes the tests loads this file.
pytest.register_assert_rewrite("check_layer", "other_backend")

# One process runs all tests of a file. These files start first, so that no process is still busy
# with one of them when the others are done.
LONGEST = [
    "test_train",
    "test_devices",
    "test_formats",
    "test_backends",
    "test_readme",
    "test_quick_start",
    "test_text_labels",
]


def pytest_collection_modifyitems(items):
    rank = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path.stem, len(LONGEST)))


def pytest_runtest_setup(item):
    if item.get_closest_marker("once") and BACKEND != "torch":
        pytest.skip("the same on every backend; runs on PyTorch")


@pytest.fixture(scope="session")
def timm():
    from benchmarks.harness import import_torchvision

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # from timm's imports
        try:
            import_torchvision()
            return importlib.import_module("timm")
        except ImportError:
            pytest.skip("timm is not installed")


@pytest.fixture
def app(capsys):
    """A function that runs a program and returns its exit code, its output and its errors."""

    def run(name, *arguments):
        try:
            code = load_app(name).main([str(argument) for argument in arguments])
        except SystemExit as stopped:
            code = stopped.code
        return code, *capsys.readouterr()

    return run


@pytest.fixture(scope="session")
def tokenizer():
    from small_text import small_tokenizer

    return small_tokenizer()


@pytest.fixture
def saved_figures(monkeypatch):
    """The matplotlib figures of all pictures that a test saves, in order."""
    from keras_gmlp.utils import plotting

    figures, save = [], plotting.save
    monkeypatch.setattr(plotting, "save", lambda f, path: figures.append(f) or save(f, path))
    return figures


@pytest.fixture(scope="module", autouse=True)
def freeze_garbage():
    """Spares the collector the objects of the libraries and of earlier files, a tenth of the time.

    Converters to TFLite ask for a full collection each.
    """
    import keras  # noqa: F401

    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def seed():
    import keras

    keras.utils.set_random_seed(0)


@pytest.fixture(scope="session", autouse=True)
def without_power_cuts():
    """Does not wait for the disk, as a run does for each of its files: no power cut comes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", os.fstat)
        yield


@pytest.fixture(scope="session", autouse=True)
def one_trace():
    """Has `fit` create the optimizer's variables before its first step.

    The first step would create them on TensorFlow, which then traces it a second time. Tracing is
    most of what a small model costs here. Yields the method of Keras.
    """
    import keras

    original = keras.Model.make_train_function

    def make_train_function(self, force=False):
        if self.optimizer is not None and not self.optimizer.built:
            self.optimizer.build(self.trainable_variables)
        return original(self, force)

    with pytest.MonkeyPatch.context() as patch:
        if keras.backend.backend() == "tensorflow":
            patch.setattr(keras.Model, "make_train_function", make_train_function)
        yield original


@pytest.fixture(autouse=True)
def eager(request, monkeypatch):
    if request.node.get_closest_marker("eager"):
        import keras

        if keras.backend.backend() == "tensorflow":
            monkeypatch.setattr(
                keras.Model, "run_eagerly", property(lambda _: True, lambda *_: None)
            )


@pytest.fixture
def start_at_zero(monkeypatch):
    """Saves the seconds that drawing 90 million numbers takes, where only their count matters."""
    import keras

    def zeros(self, shape, dtype=None):
        return keras.ops.zeros(shape, dtype)

    for initializer in ("GlorotUniform", "HeNormal", "RandomNormal", "TruncatedNormal"):
        monkeypatch.setattr(getattr(keras.initializers, initializer), "__call__", zeros)
