import contextlib
import os
import warnings

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import pytest

pytest.register_assert_rewrite("check_layer")


@pytest.fixture(scope="session")
def timm():
    """timm, whose torchvision may lack its operators beside a PyTorch for the CPU alone."""
    import torch

    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "roi_align", "roi_pool", "ps_roi_align", "ps_roi_pool", "deform_conv2d"):
        for declared in (name, f"_{name}_backward", f"q{name}"):
            with contextlib.suppress(RuntimeError):  # there already
                library.define(f"{declared}() -> ()")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own imports
        return pytest.importorskip("timm")


@pytest.fixture(autouse=True)
def seed():
    keras.utils.set_random_seed(0)
