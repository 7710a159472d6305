"""Odd text files that become a corpus, and damaged folders of prepared corpora."""

import json
import lzma

from attack.kinds import SilentLossError
from attack.mutations import copy_folder, mutate, mutate_json
from keras_gmlp.data.text.corpus import PreparedCorpus, prepare_corpus

LINES = (
    *("the cat and the hat", "A dog, a bone.", "", "", " ", "tối パンダ 한국어", "x" * 3000),
    "[SEP] [MASK]",
    *("a\rb", "\u2028", "\ufeff", "e\u0301", "\U0001f600" * 50, "\x1b[31m", "a\u200bb"),
)


class Corpora:
    """Each case is a text file, or the folder that was prepared from one."""

    def __init__(self, folder):
        (folder / "text.txt").write_text("the cat and the hat\na dog\n\na cat, a hat\n" * 20)
        self.prepared = folder / "prepared"
        prepare_corpus([folder / "text.txt"], 128, self.prepared, [folder / "text.txt"])
        self.tokenizer = self.prepared / "tokenizer.json"
        whole = PreparedCorpus.open(self.prepared)
        self.whole = whole.train.tokens.tolist()

    def make(self, rng, folder):
        if rng.random() < 0.5:
            place = folder / "prepared"
            for path in copy_folder(self.prepared, place, rng):
                if path.suffix == ".json" and rng.random() < 0.6:
                    path.write_text(json.dumps(mutate_json(json.loads(path.read_text()), rng)))
                elif rng.random() < 0.2:
                    path.unlink()
                else:
                    path.write_bytes(mutate(path.read_bytes(), rng))
            return place, None
        lines = [rng.choice(LINES) for _ in range(rng.randrange(1, 30))]
        data, whole = "\n".join(lines).encode(), rng.random() < 0.3
        packed = rng.random() < 0.3
        data = lzma.compress(data) if packed else data
        path = folder / ("text.txt.xz" if packed else "text.txt")
        path.write_bytes(data if whole else mutate(data, rng))
        return path, lines if whole else None

    def check(self, case):
        path, lines = case
        if path.name == "prepared":
            prepared = PreparedCorpus.open(path)
        else:
            learned = 128 if lines and len(lines) % 2 else str(self.tokenizer)
            prepared = prepare_corpus([path], learned, path.with_name("out"))
        for corpus in filter(None, (prepared.train, prepared.valid)):
            windows = corpus.windows(16)
            corpus.summary()
            covered = sum(int(stop) - int(start) for start, stop in windows)
            if covered != len(corpus) or windows.min() < 0 or windows.max() > len(corpus):
                raise SilentLossError(f"windows of {covered} tokens; the corpus has {len(corpus)}")
            if corpus.tokens.max() >= prepared.tokenizer.size:
                raise SilentLossError(f"token {corpus.tokens.max()} of {prepared.tokenizer.size}")
        if lines is not None:
            found, expected = prepared.train.info["characters"], sum(map(len, lines))
            # A mark of byte order at the start and ends of lines do not count.
            if not 0 <= expected - found <= 1 + lines.count("a\rb"):
                raise SilentLossError(f"{found} characters of {expected}")
