"""Runs: from a preset, weights, a recipe and data to a trained, exported model."""

import lazy_loader

# Names load on first use (SPEC 1).
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "folds": ["fold_settings"],
        "settings": ["RunSettings"],
        "run": ["read_run", "train_run"],
    },
)
