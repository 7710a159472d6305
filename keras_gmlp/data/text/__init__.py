"""Text: tokenizer, corpus, masked windows and labelled sentences."""

import lazy_loader

# Names load on first use (SPEC 1): the tokenizer imports no Keras, reading text no TensorFlow.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "corpus": ["Corpus", "PreparedCorpus", "build_corpus", "prepare_corpus"],
        "labelled_texts": ["TextData", "TextSplit", "hold_out", "load_text"],
        "masking": ["MaskedBatches", "validation_set"],
        "sentence_batches": ["TextBatches"],
        "tokenizer": ["Tokenizer"],
    },
)
