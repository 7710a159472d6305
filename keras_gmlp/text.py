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

from keras_gmlp.models.presets import TEXT_PRESETS as PRESETS
from keras_gmlp.utils.lazy_names import attach_names

__getattr__, __dir__, __all__ = attach_names(__spec__)
__all__ += ["PRESETS"]
