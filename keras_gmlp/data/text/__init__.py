"""Text: tokenizer, corpus and masked windows."""

import lazy_loader

# Names load on first use (SPEC 1): the tokenizer alone imports no Keras.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "corpus": ["Corpus", "PreparedCorpus", "build_corpus", "prepare_corpus"],
        "masking": ["MaskedBatches", "masked_windows", "validation_set"],
        "tokenizer": ["Encoding", "Tokenizer"],
    },
)
