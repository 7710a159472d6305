"""Training speed of language models next to Hugging Face's BERT.

    python -m keras_gmlp.benchmark.text_speed --presets bert_nano gmlp_nano amlp_nano

Trains each preset on random tokens, and Hugging Face's eager PyTorch BERT of the size of
`bert_nano` on the same ones, with AdamW. Each run is a process; they take turns, so that other work
on the machine affects all of them. Prints a Markdown table.
"""

import argparse
import os
import statistics
import subprocess
import sys

from keras_gmlp.utils.environment import installed_versions, processor

VERSIONS = ("keras", "tensorflow-cpu", "tensorflow", "jax", "torch", "transformers")
LENGTH, WORDS, PREDICTED = 128, 8192, 19  # masked places in a window at 15 %
PEER = "transformers"


def main(arguments=None):
    options = parse(arguments)
    names = [*options.presets, PEER]
    speeds = {name: [] for name in names}
    for repeat in range(options.repeats):
        for name in names if repeat % 2 else reversed(names):
            speeds[name].append(measure(name, options))
    print(f"{processor()}, {os.environ.get('OMP_NUM_THREADS', 'all')} threads, {options.backend}.")
    print(", ".join(f"{k} {v}" for k, v in installed_versions(VERSIONS).items()) + ".")
    print(f"{options.batch} windows of {LENGTH} tokens a step, {options.precision}.\n")
    print("| model | tokens/s | relative to Hugging Face's BERT |\n|---|---:|---:|")
    for name in names:
        pairs = zip(speeds[name], speeds[PEER], strict=True)
        ratio = statistics.median(ours / theirs for ours, theirs in pairs)
        label = "Hugging Face, BERT, 9 layers of 128" if name == PEER else name
        print(f"| {label} | {statistics.median(speeds[name]):,.0f} | {ratio:.2f} |")
    return 0


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--presets", nargs="+", default=["bert_nano", "gmlp_nano", "amlp_nano"])
    parser.add_argument("--backend", default="torch", choices=["tensorflow", "jax", "torch"])
    parser.add_argument("--precision", default="float32", help="default: %(default)s")
    parser.add_argument("--batch", type=int, default=64, help="windows in a step")
    parser.add_argument("--steps", type=int, default=8, help="timed after two others")
    parser.add_argument("--repeats", type=int, default=3, help="default: %(default)s")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker:
        print(work(options))
        sys.exit(0)
    return options


def measure(name, options):
    """Trains in a new process; returns its tokens per second."""
    backend = "torch" if name == PEER else options.backend
    environment = {**os.environ, "KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, "-m", "keras_gmlp.benchmark.text_speed", "--worker", name]
    for option in ("precision", "batch", "steps"):
        command += [f"--{option}", str(getattr(options, option))]
    result = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
    if result.returncode:
        raise RuntimeError(f"{name} failed:\n{result.stderr[-2000:]}")
    return float(result.stdout.split()[-1])


def work(options):
    """Trains one model in this process; returns its tokens per second."""
    from keras_gmlp.utils.environment import keep_freed_memory

    keep_freed_memory()  # as the programs that train do
    step = peer_step(options) if options.worker == PEER else keras_step(options)
    seconds = [step() for _ in range(options.steps + 2)][2:]
    return options.batch * LENGTH / statistics.median(seconds)


def batch_arrays(options):
    """Returns token ids, masked places and targets, at random."""
    import numpy as np

    generator = np.random.default_rng(0)
    ids = generator.integers(5, WORDS, (options.batch, LENGTH)).astype("int32")
    places = np.sort(generator.random((options.batch, LENGTH)).argsort()[:, :PREDICTED])
    return ids, places.astype("int32"), np.take_along_axis(ids, places, axis=1)


def keras_step(options):
    """Returns a function that trains one step of a preset and returns its seconds."""
    import time

    import keras
    import numpy as np

    from keras_gmlp.models.language_families import build

    ids, places, targets = batch_arrays(options)
    model = build(options.worker, vocabulary_size=WORDS, dtype=options.precision)
    inputs = {"token_ids": ids, "mask_positions": places}
    weights = np.ones(targets.shape, "float32")

    def step():
        start = time.perf_counter()
        model.train_on_batch(inputs, targets, sample_weight=weights)
        keras.ops.convert_to_numpy(model.optimizer.iterations)  # waits for the device
        return time.perf_counter() - start

    return step


def peer_step(options):
    """Returns a function that trains one step of Hugging Face's BERT and returns its seconds."""
    import time

    import torch
    import transformers
    from transformers.utils import import_utils

    # BERT needs no images, and a torchvision for another build of PyTorch fails to import.
    import_utils.is_torchvision_available = lambda: False
    transformers.utils.is_torchvision_available = lambda: False
    config = transformers.BertConfig(
        vocab_size=WORDS,
        hidden_size=128,
        num_hidden_layers=9,
        num_attention_heads=2,
        intermediate_size=512,
        max_position_embeddings=LENGTH,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = transformers.BertForMaskedLM(config).to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    ids, places, targets = (torch.as_tensor(a).long().to(device) for a in batch_arrays(options))
    half = options.precision == "mixed_bfloat16"

    def step():
        start = time.perf_counter()
        with torch.autocast(device, torch.bfloat16, enabled=half):
            hidden = model.bert(ids).last_hidden_state
            # At the masked places alone, which its own forward does not offer.
            chosen = torch.take_along_dim(hidden, places[:, :, None], dim=1)
            logits = model.cls(chosen)
        loss = torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()  # waits for the device
        return time.perf_counter() - start

    return step


if __name__ == "__main__":
    sys.exit(main())
