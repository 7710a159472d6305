"""Adds short sentences with negations to the training texts of SST-2.

python docs/language/make_negations.py runs/sst2-negations

Writes train.csv, the training texts and sentences from templates, and test.csv, SST-2's validation
texts. Adjectives come from the training texts. Sentences of docs/language/negation.tsv, on which
the effect is measured, are left out, and no template has the form of one of them.
"""

import argparse
import re
from collections import Counter
from pathlib import Path

import numpy as np

from keras_gmlp.data.text.labelled_texts import load_text
from keras_gmlp.utils.csv_tables import write_table

SENTENCES = 12_000
TEST = Path(__file__).with_name("negation.tsv")

# {a}: an adjective, {n}: a noun, {v}: a verb, {c}: a comparative. The first group of templates
# turns the label of its word around, the second keeps it.
TURNED = {
    "a": (
        "not {a}",
        "it is not {a}",
        "this is not a {a} film",
        "never {a}",
        "it is n't {a}",
        "not once is it {a}",
    ),
    "n": (
        "no {n}",
        "there is no {n} in it",
        "without {n}",
        "without a trace of {n}",
        "not a hint of {n}",
        "it has no {n}",
        "free of {n}",
        "i could find no {n}",
    ),
    "v": (
        "it does not {v}",
        "it never {v}s",
        "the story does n't {v}",
        "the actors will not {v} you",
        "this film can not {v}",
        "at no point does it {v}",
    ),
    "c": ("could be {c}", "i have seen {c} films", "there are {c} ones"),
}
KEPT = {
    "a": (
        "it is {a}",
        "a {a} film",
        "{a} , no doubt about it",
        "not only {a} , but also well made for its kind",
        "never less than {a}",
        "not just {a}",
    ),
    "n": ("full of {n}", "there is no lack of {n}", "nothing but {n}"),
    "v": (
        "it does {v}",
        "it never fails to {v}",
        "it {v}s",
        "i did not think it would {v} , but it does",
    ),
    "c": (
        "it could not be {c}",
        "no film is {c}",
        "i have never seen a {c} film",
        "nothing is {c}",
    ),
}
WORDS = {  # by part of speech, the positive ones first
    "n": (
        "charm imagination energy humor suspense depth style warmth tension originality emotion",
        "boredom pretension sentimentality cliches padding silliness mistakes noise filler",
    ),
    "v": (
        "entertain convince surprise move please engage charm impress",
        "bore annoy irritate drag stumble offend confuse frustrate",
    ),
    "c": ("better funnier smarter stronger finer", "worse duller weaker longer sillier"),
}


def find_adjectives(texts, labels):
    """Returns the adjectives among the texts of one word, positive and negative ones."""
    modified = Counter()
    for text in texts:
        modified.update(re.findall(r"\b(?:very|so|too|more|most|really) ([a-z]{3,})\b", text))
    found = {}
    for text, label in zip(texts, labels, strict=True):
        word = text.strip()
        if word.isalpha() and modified[word] >= 3:
            found.setdefault(word, set()).add(int(label))
    certain = {word: labels.pop() for word, labels in found.items() if len(labels) == 1}
    return [sorted(word for word, of in certain.items() if of == label) for label in (1, 0)]


def write_sentences(adjectives, seed=0):
    """Yields pairs of a sentence and whether it is positive."""
    rng = np.random.default_rng(seed)
    words = {"a": adjectives, **{k: [part.split() for part in both] for k, both in WORDS.items()}}
    for _ in range(SENTENCES):
        turned, positive = rng.random() < 0.7, rng.random() < 0.5
        kind = rng.choice(["a", "n", "v", "c"], p=[0.55, 0.2, 0.17, 0.08])
        template = rng.choice((TURNED if turned else KEPT)[kind])
        word = rng.choice(words[kind][positive == turned])  # 0: positive words
        yield template.format(**{kind: word}), bool(positive)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    out = parser.parse_args().out
    data = load_text("sst2")
    out.mkdir(parents=True, exist_ok=True)
    adjectives = find_adjectives(data.train.texts, data.train.labels)
    print(f"{len(adjectives[0])} positive and {len(adjectives[1])} negative adjectives")
    measured = {line.partition("\t")[0] for line in TEST.read_text("utf-8").splitlines()}
    found = [row for row in write_sentences(adjectives) if row[0] not in measured]
    print(f"{len(found):,} sentences, {SENTENCES - len(found)} left out")
    rows = [(text, data.labels[positive]) for text, positive in found]
    for name, split in (("train", data.train), ("test", data.test)):
        own = [
            (text, data.labels[label])
            for text, label in zip(split.texts, split.labels, strict=True)
        ]
        own += rows if name == "train" else []
        write_table(out / f"{name}.csv", [("text", "label"), *own])


if __name__ == "__main__":
    main()
