"""Images or tokens per second in training, next to timm and to Hugging Face's BERT.

Image models train on random images with the package's own `train` and the defaults of `Recipe`;
language models on random tokens. timm's gMLP has the same size. It trains with AdamW on batches
that are ready, without augmentation and without averaging its weights, which this package does.
Hugging Face's BERT has the size of `bert_nano`. Peers run eager, or with --compile under
torch.compile. On a GPU give --backends jax --pipelines device host. OMP_NUM_THREADS limits threads.
"""

import functools
import itertools
import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks.harness import Candidate, is_in_timm, make_parser, run, time_calls, timm_gmlp

BERT = "Hugging Face's BERT, 9 layers of 128"
LENGTH, WORDS, PREDICTED = 128, 8192, 19  # of a window of text; masked places at 15 %


def list_candidates(options):
    from keras_gmlp.models.presets import IMAGE_PRESETS

    for preset, precision in itertools.product(options.models, options.precisions):
        texts = preset not in IMAGE_PRESETS
        peer = f"{BERT}, {precision}" if texts else f"timm, {preset}, {precision}"
        if texts or is_in_timm(preset):
            measure = functools.partial(train_bert if texts else train_timm, preset, precision)
            yield Candidate(peer, measure, None, {"KERAS_BACKEND": "torch"})
        measure = train_texts if texts else train_images
        for backend, pipeline in itertools.product(options.backends, options.pipelines):
            own = functools.partial(measure, preset, precision, pipeline)
            name = f"{preset}, {precision}, {backend}, {pipeline}"
            yield Candidate(name, own, peer, {"KERAS_BACKEND": backend})


def train_images(preset, precision, pipeline, options, folder):
    """Returns the speed of the median epoch after the first, which compiles."""
    import numpy as np

    from keras_gmlp import Recipe, build, data, train
    from keras_gmlp.models.presets import lookup
    from keras_gmlp.training.run_directory import read_history

    size, batch = lookup(preset)[1], options.batch
    shape, classes = size["input_shape"], size["classes"]
    count = max(batch * options.steps, classes)  # each class has an image
    images = np.random.default_rng(0).integers(0, 256, (count, *shape), "uint8")
    labels = np.arange(count) % classes
    names = [str(each) for each in range(classes)]
    random = data.from_arrays((images, labels), (images[:2], labels[:2]), labels=names)
    recipe = Recipe(options.epochs, batch, precision=precision, pipeline=pipeline)
    with tempfile.TemporaryDirectory(dir=folder) as directory:
        train(build(preset, **recipe.model_arguments()), random, recipe, directory, verbose=0)
        history = read_history(Path(directory) / "history.csv")
    seconds = [float(row["seconds"]) for row in history[1:]]
    return {"images/s": count // batch * batch / statistics.median(seconds)}


def train_timm(preset, precision, options, folder):
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = timm_gmlp(preset).to(device).train()
    compute = torch.compile(model) if options.compile else model
    size = model.stem.img_size[0]
    images = torch.randint(256, (options.batch, 3, size, size), dtype=torch.uint8, device=device)
    labels = torch.randint(model.num_classes, (options.batch,), device=device)
    lose = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
    step = make_step(model, lambda: lose(compute(images / 127.5 - 1), labels), device, precision)
    return {"images/s": options.batch / time_calls(step, options.steps, untimed=2)}


def train_texts(preset, precision, pipeline, options, folder):
    import keras
    import numpy as np

    from keras_gmlp.models.presets import build

    model = build(preset, vocabulary_size=WORDS, dtype=precision)
    ids, places, targets = draw_texts(options.batch)
    inputs = {"token_ids": ids, "mask_positions": places}
    weights = np.ones(targets.shape, "float32")

    def step():
        model.train_on_batch(inputs, targets, sample_weight=weights)
        keras.ops.convert_to_numpy(model.optimizer.iterations)  # waits for the device

    return {"tokens/s": options.batch * LENGTH / time_calls(step, options.steps, untimed=2)}


def train_bert(preset, precision, options, folder):
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
    arrays = draw_texts(options.batch)
    ids, places, targets = (torch.as_tensor(array).long().to(device) for array in arrays)
    compute = torch.compile(model.bert) if options.compile else model.bert

    def compute_loss():
        hidden = compute(ids).last_hidden_state
        # At the masked places only, which its own forward does not offer.
        logits = model.cls(torch.take_along_dim(hidden, places[:, :, None], dim=1))
        return torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), targets.flatten())

    step = make_step(model, compute_loss, device, precision)
    return {"tokens/s": options.batch * LENGTH / time_calls(step, options.steps, untimed=2)}


def draw_texts(batch):
    """Returns random tokens, masked places and the tokens there."""
    import numpy as np

    generator = np.random.default_rng(0)
    ids = generator.integers(5, WORDS, (batch, LENGTH)).astype("int32")
    places = np.sort(generator.random((batch, LENGTH)).argsort()[:, :PREDICTED]).astype("int32")
    return ids, places, np.take_along_axis(ids, places, axis=1)


def make_step(model, compute_loss, device, precision):
    """Returns a function that trains a PyTorch model for one step."""
    import torch

    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)

    def step():
        with torch.autocast(device, torch.bfloat16, enabled=precision == "mixed_bfloat16"):
            loss = compute_loss()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        loss.item()  # waits for the device

    return step


def main(arguments=None):
    parser = make_parser("training", __doc__)
    add = parser.add_argument
    add("--models", nargs="+", default=["gmlp_n4_32"], metavar="PRESET", help="images or texts")
    add("--backends", nargs="+", default=["torch"], choices=("tensorflow", "jax", "torch"))
    add("--precisions", nargs="+", default=["float32"], metavar="POLICY", help="of Keras")
    add("--pipelines", nargs="+", default=["auto"], choices=("auto", "device", "host"))
    add("--batch", type=int, default=128, help="images or windows of text; default: 128")
    add("--steps", type=int, default=8, help="of an epoch; default: 8")
    add("--epochs", type=int, default=3, help="of image models; default: 3")
    add("--compile", action="store_true", help="peers with torch.compile")
    return run(parser, list_candidates, arguments)


if __name__ == "__main__":
    sys.exit(main())
