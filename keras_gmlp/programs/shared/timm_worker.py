#!/usr/bin/env python3
"""A benchmark's worker for timm, which runs next to any torchvision. `benchmark.py` starts it.

timm imports torchvision. A torchvision for another build of PyTorch, such as one for CUDA next to
a PyTorch for the CPU, lacks its operators and fails to import. They detect objects, which timm's
classifiers do not, so it is enough to declare them.
"""

import contextlib
import functools
import importlib
import sys

OPERATORS = ("nms", "roi_align", "roi_pool", "ps_roi_align", "ps_roi_pool", "deform_conv2d")


def import_torchvision():
    """Imports torchvision, if necessary after a declaration of its operators."""
    try:
        return importlib.import_module("torchvision")
    except RuntimeError:  # operator torchvision::nms does not exist
        declare_operators()
        return importlib.import_module("torchvision")


def declare_operators():
    """Declares each operator that does not exist, without an implementation."""
    for name in OPERATORS:
        for variant in (name, f"_{name}_backward", f"q{name}"):
            with contextlib.suppress(RuntimeError):  # it exists
                library().define(f"{variant}() -> ()")


@functools.cache
def library():
    """Returns torchvision's library; its operators live as long as this object."""
    import torch

    return torch.library.Library("torchvision", "DEF")


def main():
    from keras_gmlp.benchmark import worker

    with contextlib.suppress(ImportError):  # which the worker reports when it imports timm
        import_torchvision()
    return worker.main()


if __name__ == "__main__":
    sys.exit(main())
