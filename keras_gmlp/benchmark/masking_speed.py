"""Masked tokens per second next to Hugging Face's collator for masked language models.

    python -m keras_gmlp.benchmark.masking_speed

Both get windows of equal length from the same random tokens in memory: this package as
`text.MaskedBatches`, Hugging Face as `DataCollatorForLanguageModeling` with NumPy. They take turns
in one process. Prints a Markdown table.
"""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from keras_gmlp.utils.environment import installed_versions, processor
from keras_gmlp.utils.files import write_json

VERSIONS = ("numpy", "transformers")
LENGTH, WORDS, DOCUMENTS, TOKENS = 128, 8192, 500, 2000  # tokens of a document


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    most = DOCUMENTS * -(-TOKENS // (LENGTH - 2))
    for name, default, text in [
        ("batch", 256, f"windows in a batch, at most {most:,}"),
        ("batches", 12, "batches in a round"),
        ("rounds", 5, "rounds"),
    ]:
        parser.add_argument(
            f"--{name}", type=int, default=default, help=f"{text}; default: %(default)s"
        )
    options = parser.parse_args(arguments)
    for name in ("batch", "batches", "rounds"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} must be at least 1; received {getattr(options, name)}")
    if options.batch > most:
        parser.error(f"--batch must be at most {most:,}; received {options.batch:,}")
    with tempfile.TemporaryDirectory() as folder:
        corpus = write_random_corpus(Path(folder))
        makers = {
            "`text.MaskedBatches`": make_our_batches(corpus, options.batch),
            "Hugging Face's collator": make_peer_batches(corpus, options.batch),
        }
        speeds = measure(makers, options)
    print(f"{processor()}; {options.batch} windows of {LENGTH} tokens.")
    print(", ".join(f"{k} {v}" for k, v in installed_versions(VERSIONS).items()) + ".\n")
    print("| | tokens/s | per second of CPU time |\n|---|---:|---:|")
    for name, (clock, cpu) in speeds.items():
        print(f"| {name} | {clock:,.0f} | {cpu:,.0f} |")
    return 0


def write_random_corpus(folder):
    """Writes documents of random tokens to a folder and returns them as a `Corpus`."""
    from keras_gmlp.data.text.corpus import Corpus

    generator = np.random.default_rng(0)
    tokens = generator.integers(5, WORDS, DOCUMENTS * TOKENS).astype("uint16")
    np.save(folder / "tokens.npy", tokens)
    np.save(folder / "starts.npy", np.arange(DOCUMENTS + 1) * TOKENS)
    info = {"tokens": len(tokens), "vocabulary_size": WORDS, "special_ids": [0, 1, 2, 3, 4]}
    write_json(folder / "corpus.json", info)
    return Corpus(folder)


def make_our_batches(corpus, batch):
    """Returns a function that makes the batch of a step."""
    from keras_gmlp.data.text.masking import MaskedBatches

    return MaskedBatches(corpus, batch, LENGTH).batch


def make_peer_batches(corpus, batch):
    """Returns a function that makes a batch as Hugging Face does, from windows in memory."""
    import tokenizers
    import transformers

    words = {word: i for i, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])}
    words |= {f"word{i}": i for i in range(5, WORDS)}
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizers.Tokenizer(tokenizers.models.WordLevel(words, "[UNK]")),
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )
    collate = transformers.DataCollatorForLanguageModeling(
        tokenizer, mlm_probability=0.15, return_tensors="np"
    )
    windows = corpus.windows(LENGTH)
    ids = corpus.tokens.take(windows[:, :1] + np.arange(LENGTH - 2), mode="clip")
    ids = np.pad(ids.astype("int64"), ((0, 0), (1, 1)), constant_values=((0, 0), (2, 3)))
    special = (ids < 5).astype("int64")

    def make(step):
        rows = (step * batch + np.arange(batch)) % len(ids)
        return collate([{"input_ids": ids[i], "special_tokens_mask": special[i]} for i in rows])

    return make


def measure(makers, options):
    """Returns the median tokens per second by name: by the clock, and per second of CPU time."""
    speeds = {name: [] for name in makers}
    tokens = options.batches * options.batch * LENGTH
    for _ in range(options.rounds):
        for name, make in makers.items():
            make(0)
            clock, cpu = time.perf_counter(), time.process_time()
            for step in range(options.batches):
                make(step)
            clock, cpu = time.perf_counter() - clock, time.process_time() - cpu
            speeds[name].append((tokens / clock, tokens / cpu))
    return {n: [statistics.median(c) for c in zip(*s, strict=True)] for n, s in speeds.items()}


if __name__ == "__main__":
    sys.exit(main())
