"""Losses, metrics and optimizers: what training minimizes, measures and steps with."""

import lazy_loader

# Names load on first use (SPEC 1): a device with only the LiteRT runtime imports no Keras.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "losses": ["CrossEntropy", "MaskedCrossEntropy"],
        "metrics": ["Accuracy", "MeanAveragePrecision", "Perplexity"],
        "optimizers": ["LayerwiseAdamW", "MatrixMuon"],
    },
)
