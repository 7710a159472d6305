#!/usr/bin/env python3
"""Trains a small classifier of texts on the answers of a large one, the teacher.

The teacher answers the training texts and sentences made from them: a language model, from which
the student also starts, replaces some of their words. Texts with many words are taken more often.
The student learns the teacher's probabilities. The sentences and the answers are stored, and the
same command resumes a run that was stopped.
"""

import argparse
import dataclasses
import sys
from pathlib import Path

import keras
import numpy as np

import keras_gmlp
from keras_gmlp import text
from keras_gmlp.data.text.labelled_texts import TextData, TextSplit
from keras_gmlp.data.text.tokenizer import encode_rows
from keras_gmlp.tasks.confidence import Confidence
from keras_gmlp.tasks.masked_lm import MASKS
from keras_gmlp.utils.files import atomic_write, read_json, write_json
from keras_gmlp.utils.progress import ProgressBar
from keras_gmlp.utils.sources import TRAINABLE, find_model

BLOCK = 2048  # texts between two times that answers are stored
BEST = 20  # most probable words, of which one is drawn


@dataclasses.dataclass(frozen=True, eq=False)
class TaughtTexts(TextData):
    """Texts whose training targets are the teacher's probabilities, float32 `(texts, classes)`."""

    probabilities: np.ndarray = None

    def encode(self, split, length):
        ids, labels = super().encode(split, length)
        return ids, self.probabilities if split == "train" else labels


def read_blocks(ids, job, size=BLOCK):
    """Yields the rows of texts of similar lengths, cut to the longest one, with a progress bar."""
    used = np.count_nonzero(ids, axis=1)
    order = np.argsort(used, kind="stable")
    with ProgressBar(job, len(ids)) as progress:
        for start in range(0, len(ids), size):
            rows = order[start : start + size]
            width = -(-used[rows].max() // 16) * 16  # few widths, because backends compile each
            yield rows, ids[rows, :width]
            progress.show(start + len(rows))


def make_sentences(model, texts, count, share, seed):
    """Returns texts in which a masked language model replaced a share of the words."""
    generator, tokenizer = np.random.default_rng(seed), model.tokenizer
    words = [sentence.split() for sentence in texts]
    sizes = np.array([len(sentence) for sentence in words])
    made, masked, places = [], [], []
    for number in generator.choice(len(texts), count, p=sizes / sizes.sum()):
        masks = np.clip(generator.binomial(sizes[number], share), 1, min(MASKS, sizes[number]))
        places.append(np.sort(generator.choice(sizes[number], masks, replace=False)))
        made.append(words[number].copy())
        hidden = np.array(words[number], object)
        hidden[places[-1]] = "[MASK]"
        masked.append(" ".join(hidden))
    ids = encode_rows(tokenizer, masked, model.length)
    for rows, part in read_blocks(ids, "replacing words", 32):
        asked = np.zeros((len(part), MASKS), "int32")  # an unused one points at [CLS]
        for row, tokens in zip(asked, part, strict=True):
            (found,) = np.nonzero(tokens == tokenizer.mask_id)
            row[: len(found)] = found[:MASKS]
        logits = model.run(token_ids=part, mask_positions=asked)
        logits = np.where(tokenizer.are_words, logits, -np.inf)
        best = np.argpartition(logits, -BEST, axis=-1)[..., -BEST:]
        chances = np.take_along_axis(logits, best, -1) + generator.gumbel(size=best.shape)
        drawn = np.take_along_axis(best, chances.argmax(-1, keepdims=True), -1)[..., 0]
        for number, tokens, used in zip(rows, drawn, asked > 0, strict=True):
            for place, token in zip(places[number], tokens[used], strict=False):  # some were cut
                made[number][place] = tokenizer.tokens[token]
    return [*map(" ".join, made)]


def store_answers(teacher, texts, path):
    """Returns the teacher's logits of texts; those that a file holds already are not computed."""
    ids = encode_rows(teacher.tokenizer, texts, teacher.length)
    if not path.exists():
        with atomic_write(path) as temporary, temporary.open("wb") as file:
            np.save(file, np.full((len(texts), len(teacher.labels)), np.nan, "float32"))
    answers = np.load(path, mmap_mode="r+")
    for rows, part in read_blocks(ids, "asking the teacher"):
        if np.isnan(answers[rows]).any():
            answers[rows] = teacher.run(token_ids=part)
            answers.flush()
    return np.array(answers)


def teach(options):
    """Makes the sentences, asks the teacher and trains the student."""
    folder = Path(options.out)
    teacher, start = (
        keras_gmlp.load(find_model(source, TRAINABLE)[0])
        for source in (options.teacher, options.weights)
    )
    data = dataclasses.replace(text.load_text(options.data), tokenizer=start.tokenizer)
    if data.pairs or data.train.several or teacher.labels != data.labels:
        raise ValueError(
            f"{options.data}: expected single texts of one label each, with the teacher's classes."
        )

    names = "teacher", "weights", "sentences", "replaced"
    made = {name: getattr(options, name) for name in (*names, "data", "seed")}
    stored = read_json(folder / "sentences.json", {})
    if stored and stored["made"] != made:
        raise ValueError(f"{folder}: holds sentences of another command; give another --out.")
    if not stored:
        how = options.sentences, options.replaced, options.seed
        stored = {"made": made, "sentences": make_sentences(start, data.train.texts, *how)}
        write_json(folder / "sentences.json", stored)
    texts = data.train.texts + stored["sentences"]
    answers = store_answers(teacher, texts, folder / "answers.npy")

    probabilities = Confidence(options.temperature).probabilities(answers).astype("float32")
    taught = {"train": TextSplit(texts, answers.argmax(-1)), "probabilities": probabilities}
    data = TaughtTexts(**vars(data) | taught)
    recipe = keras_gmlp.Recipe(
        epochs=options.epochs,
        batch_size=options.batch_size,
        learning_rate=options.learning_rate,
        weight_decay=0.01,
        ema=0.0,
        precision=options.precision,
        seed=options.seed,
        task=text.TextClassification(length=options.length),
    )
    keras.utils.set_random_seed(options.seed)
    encoder = text.adapt(start.model, dropout=options.dropout, dtype=recipe.precision)
    model = text.text_classifier(encoder, len(data.labels), options.dropout)
    settings = {name: getattr(options, name) for name in (*names, "temperature")}
    keras_gmlp.train(model, data, recipe, folder, extra=settings)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", help="labelled texts, as apps/train.py --task takes them")
    parser.add_argument("--teacher", required=True, help="a classifier: a run, a file or a BERT")
    parser.add_argument("--weights", default="amlp_nano-wiki", help="language model to start from")
    parser.add_argument("--sentences", type=int, default=200_000, help="number of new sentences")
    parser.add_argument("--replaced", type=float, default=0.2, help="share of their words")
    parser.add_argument("--temperature", type=float, default=1.0, help="of the teacher's answers")
    parser.add_argument("--length", type=int, default=64, help="tokens in a text")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--learning-rate", type=float, default=3e-4)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", required=True, help="folder of the run")
    options = parser.parse_args(arguments)
    try:
        teach(options)
    except (OSError, ValueError) as error:
        sys.exit(f"teach_texts: {' '.join(str(error).split())}")


if __name__ == "__main__":
    main()
