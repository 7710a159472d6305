"""Filters, attention maps, scores and confusions of trained models, as arrays and as pictures."""

import lazy_loader

# Names load on first use (SPEC 1): a device with the LiteRT runtime alone imports no Keras.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "explanation": ["class_maps"],
        "plots": [
            "draw_attention",
            "draw_class_maps",
            "draw_confusion",
            "draw_gallery",
            "draw_mistakes",
            "draw_reliability",
            "draw_spatial_filters",
        ],
        "scores": ["Predictions", "calibration_error", "score"],
        "tokens": ["attention_maps", "confusion", "spatial_filters"],
    },
)
