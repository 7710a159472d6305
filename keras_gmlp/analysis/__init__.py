"""Filters, attention maps and class maps of trained models, as arrays and as pictures."""

import lazy_loader

# Names load on first use (SPEC 1): a device with only the LiteRT runtime imports no Keras.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "explanation": ["class_maps"],
        "plots": ["draw_attention", "draw_class_maps", "draw_spatial_filters"],
        "tokens": ["attention_maps", "spatial_filters"],
    },
)
