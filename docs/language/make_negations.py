"""Adds short sentences with negations to the training texts of SST-2.

python docs/language/make_negations.py runs/sst2-negations

Writes train.csv, the training texts and sentences from the templates of negations.toml, and
test.csv, SST-2's validation texts. Adjectives come from the training texts, too. Sentences of the
tables negation*.tsv, on which the effect is measured, are left out. Most training texts are phrases
of longer ones: with --validation COUNT, validation.csv holds so many whole sentences, and train.csv
none of the phrases that occur only in them.
"""

import argparse
import csv
import re
import tomllib
from collections import Counter
from pathlib import Path

import numpy as np

from keras_gmlp.data.text.labelled_texts import load_text
from keras_gmlp.utils.files import atomic_write

SENTENCES = 40_000
TEMPLATES = Path(__file__).with_name("negations.toml")
TESTS = sorted(Path(__file__).parent.glob("negation*.tsv"))

DOUBLED = ("drag", "regret", "skip", "plod", "repel")  # dragged
OTHERS = ("not", "nothing", "like", "spot")  # no adjectives
SHARES = {  # of the kinds of words
    "a": 0.33,
    "f": 0.06,
    "n": 0.12,
    "k": 0.1,
    "v": 0.08,
    "w": 0.04,
    "r": 0.1,
    "i": 0.09,
    "h": 0.02,
    "c": 0.05,
    "d": 0.01,
}


def inflect(verb, form):
    """Returns a regular verb, or a noun, with -s, -ed or -ing."""
    if form == "s":
        if verb[-1] == "y" and verb[-2] not in "aeo":
            return f"{verb[:-1]}ies"
        return verb + ("es" if verb.endswith(("s", "sh", "ch", "x")) else "s")
    if verb in DOUBLED:
        return verb + verb[-1] + form
    return (verb[:-1] if verb.endswith("e") else verb) + form


def find_adjectives(texts, labels):
    """Returns the adjectives among the texts of one word, positive and negative ones."""
    modified = Counter()
    for text in texts:
        modified.update(re.findall(r"\b(?:very|so|too|really) ([a-z]{3,})\b", text))
    found = {}
    for text, label in zip(texts, labels, strict=True):
        word = text.strip()
        if word.isalpha() and modified[word] >= 3 and not word.endswith("ly"):
            found.setdefault(word, set()).add(int(label))
    certain = {word: labels.pop() for word, labels in found.items() if len(labels) == 1}
    return [sorted(word for word, of in certain.items() if of == label) for label in (1, 0)]


def fill(template, words, neutral, positive, rng):
    """Replaces the fields of a template by words; the word of the field is on the given side."""

    def replace(field):
        kind, which, form = field.groups()
        if (kind == "s" and not form) or kind == "m":
            word = rng.choice(neutral[kind])
        else:
            word = rng.choice(words[kind][positive == (which == "0")])
        return inflect(word, form) if form else word

    text = re.sub(r"{(.)([02]?)(s|ed|ing|)}", replace, template).replace("~", " ")
    return re.sub(r"\ba (?=[aeio])", "an ", text)


def write_sentence(rng, templates, words):
    """Returns a sentence and whether it is positive."""
    turned, positive = rng.random() < 0.7, rng.random() < 0.5
    kind = rng.choice(list(SHARES), p=list(SHARES.values()))
    template = rng.choice(templates["turned" if turned else "kept"][kind])
    if template.endswith(" +"):
        stress = f" {rng.choice(templates['stresses'])}" if rng.random() < 0.4 else ""
        template = template[:-2] + stress
    neutral = {"s": templates["subjects"], "m": templates["things"]}
    return fill(template, words, neutral, positive != turned, rng), positive


def write_sentences(adjectives, seed=0):
    """Yields pairs of a text and whether it is positive."""
    rng = np.random.default_rng(seed)
    templates = tomllib.loads(TEMPLATES.read_text("utf-8"))
    words = {kind: [part.split() for part in both] for kind, both in templates["words"].items()}
    known = {*words["a"][0], *words["a"][1], *OTHERS}
    for ours, found in zip(words["a"], adjectives, strict=True):
        ours += sorted(set(found) - known)
    for _ in range(SENTENCES):
        text, positive = write_sentence(rng, templates, words)
        draw = rng.random()
        if draw < 0.15:  # the sentence after `but` decides
            first, opposite = write_sentence(rng, templates, words)
            text = f"{first} {'and' if opposite == positive else ', but'} {text}"
        elif draw < 0.25:
            text = rng.choice(templates["starts"]) + text
        elif draw < 0.4:
            text += rng.choice(templates["ends"])
        yield text, positive


def hold_out(rows, count):
    """Returns the rows without whole sentences and their phrases, and the rows of the sentences."""
    labels = {text.strip(): label for text, label in rows}
    whole, joined = [], "\n"
    for text in sorted(labels, key=len, reverse=True):
        if f" {text} " not in joined:
            whole.append(text)
            joined += f" {text} \n"
    long = [text for text in whole if len(text.split()) >= 8]
    held = set(np.random.default_rng(0).choice(long, count, replace=False).tolist())
    kept = "".join(f" {text} \n" for text in whole if text not in held)
    train = [row for row in rows if f" {row[0].strip()} " in kept]
    return train, [(text, labels[text]) for text in sorted(held)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--validation", type=int, default=0, metavar="COUNT")
    options = parser.parse_args()
    out = options.out
    data = load_text("sst2")
    out.mkdir(parents=True, exist_ok=True)
    adjectives = find_adjectives(data.train.texts, data.train.labels)
    print(f"{len(adjectives[0])} positive and {len(adjectives[1])} negative adjectives")
    lines = [line for path in TESTS for line in path.read_text("utf-8").splitlines()]
    measured = {line.partition("\t")[0] for line in lines}
    found = [row for row in write_sentences(adjectives) if row[0] not in measured]
    print(f"{len(found):,} sentences, {SENTENCES - len(found)} left out")
    made = [(text, data.labels[positive]) for text, positive in found]
    rows = {
        name: [(text, data.labels[label]) for text, label in zip(s.texts, s.labels, strict=True)]
        for name, s in (("train", data.train), ("test", data.test))
    }
    if options.validation:
        rows["train"], rows["validation"] = hold_out(rows["train"], options.validation)
    rows["train"] += made
    for name, own in rows.items():
        # `write_table` would put an apostrophe before a text that begins with a dash.
        with (
            atomic_write(out / f"{name}.csv") as path,
            path.open("w", encoding="utf-8", newline="") as file,
        ):
            csv.writer(file, lineterminator="\n").writerows([("text", "label"), *own])


if __name__ == "__main__":
    main()
