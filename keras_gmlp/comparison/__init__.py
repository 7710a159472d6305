"""Plans of runs over presets, seeds and shares of the training set, with their table and charts."""

import lazy_loader

# Names load on first use (SPEC 1): a device with only the LiteRT runtime imports no Keras.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "plan": ["Plan", "plan_images", "plan_texts", "read_plan"],
        "plan_report": ["write_report"],
    },
)
