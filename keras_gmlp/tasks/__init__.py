"""Tasks: what a model is trained for."""

import lazy_loader

# Names load on first use (SPEC 1): a device with the LiteRT runtime alone imports no Keras.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "task": ["Task"],
        "image_classification": ["ImageClassification"],
        "multi_label": ["MultiLabelClassification"],
        "masked_lm": ["MaskedLM"],
        "text_classification": ["TextClassification"],
        "question_answering": ["SpanAnswering"],
    },
)
