"""Language models: tokenizer, masked training, classifiers, answers. Re-exports only.

```python
from keras_gmlp import text

prepared = text.prepare_corpus("wiki/*.txt", 8192, "runs/wiki", valid="held_out.txt")
model = text.build("gmlp_nano", prepared.tokenizer)
batches = text.MaskedBatches(prepared.train, batch_size=64)
model.fit(batches, steps_per_epoch=1000, shuffle=False)
classifier = text.text_classifier(model, classes=2)

filler = text.from_keras(model, prepared.tokenizer)  # or keras_gmlp.load("runs/gmlp_nano-text")
filler.fill_mask("Paris is the [MASK] of France.", top=3)
```
"""

import importlib

# Names load on first use: the tokenizer imports no Keras.
_MODULES = {
    "data.text.corpus": ["prepare_corpus"],
    "data.text.labelled_texts": ["load_text"],
    "data.text.masking": ["MaskedBatches"],
    "data.text.tokenizer": ["Tokenizer"],
    "models.language_model": [
        "adapt",
        "language_model",
        "text_classifier",
    ],
    "models.language_families": ["BERT", "aMLP", "gMLP"],
    "models.presets": ["build"],
    "tasks.masked_lm": ["MaskedLM"],
    "tasks.text_classification": ["TextClassification"],
    "weights.bert": ["load_bert"],
    "inference.similarity": ["embed", "find_similar"],
    "inference.text": ["TextModel", "from_keras"],
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names}
_PLACES["PRESETS"] = "models.presets"

__all__ = sorted(_PLACES)


def __getattr__(name):
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"keras_gmlp.{_PLACES[name]}")
    return getattr(module, "TEXT_PRESETS" if name == "PRESETS" else name)


def __dir__():
    return __all__
