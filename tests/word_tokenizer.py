"""A tokenizer of whole words with the interface of `keras_gmlp.data.text.Tokenizer`."""

import re
from types import SimpleNamespace

import numpy as np


class WordTokenizer:
    """Gives each new word the next id; a word is a run of letters and digits, or one sign."""

    pad_id, unk_id, cls_id, sep_id, mask_id = range(5)

    def __init__(self):
        self.ids = {}

    def encode(self, a, b=None, length=None):
        return self.encode_batch([a if b is None else (a, b)], length)[0]

    def encode_batch(self, texts, length=None):
        return [self._encode((text,) if isinstance(text, str) else text, length) for text in texts]

    def _encode(self, texts, length):
        ids, offsets = [self.cls_id], [(0, 0)]
        for text in texts:
            for match in re.finditer(r"\w+|[^\w\s]", text):
                ids.append(self.ids.setdefault(match[0].lower(), 5 + len(self.ids)))
                offsets.append(match.span())
            ids.append(self.sep_id)
            offsets.append((0, 0))
        cut = max(0, len(ids) - length) if length else 0
        if length is not None:
            ids = [*ids[:length], *[0] * (length - len(ids))]
            offsets = [*offsets[:length], *[(0, 0)] * (length - len(offsets))]
        return SimpleNamespace(ids=np.array(ids, "int32"), offsets=np.array(offsets), cut=cut)
