"""Adds short sentences with negations to the training texts of SST-2.

python docs/language/make_negations.py runs/sst2-negations

Writes train.csv, the training texts and sentences from templates, and test.csv, SST-2's validation
texts. Adjectives come from the training texts and from a list. Sentences of the tables
docs/language/negation*.tsv, on which the effect is measured, are left out.
"""

import argparse
import re
from collections import Counter
from pathlib import Path

import numpy as np

from keras_gmlp.data.text.labelled_texts import load_text
from keras_gmlp.utils.csv_tables import write_table

SENTENCES = 24_000
TESTS = sorted(Path(__file__).parent.glob("negation*.tsv"))

# {a}: an adjective, {n}: a noun, {v}: a verb, {c}: a comparative, {s}: a subject. The first group
# of templates turns the label of its word around, the second keeps it.
TURNED = {
    "a": (
        "not {a}",
        "not so {a} after all",
        "{s} is not {a}",
        "{s} is n't {a}",
        "{s} is never {a}",
        "{s} is not really {a}",
        "this is not a {a} film",
        "never {a}",
        "not once is {s} {a}",
        "nobody will find it {a}",
        "i would not call {s} {a}",
        "at no time does {s} become {a}",
        "{s} is neither {a} nor {b}",
        "neither {a} nor {b}",
        "nothing {a} happens in it",
        "i did not find {s} {a}",
    ),
    "n": (
        "no {n}",
        "there is no {n} in it",
        "there is n't any {n} here",
        "without {n}",
        "without a trace of {n}",
        "not a hint of {n}",
        "{s} has no {n}",
        "{s} does not have much {n}",
        "free of {n}",
        "i could find no {n}",
        "none of the {n} i expected",
        "{s} is never a source of {n}",
        "you will look for {n} in vain",
    ),
    "v": (
        "{s} does not {v}",
        "{s} never {v}s",
        "{s} does n't {v}",
        "{s} will not {v} you",
        "{s} can not {v}",
        "at no point does {s} {v}",
        "{s} did not {v} me",
        "{s} refuses to {v}",
        "no scene {v}s",
        "nothing in it {v}s",
    ),
    "c": ("could be {c}", "i have seen {c} films", "there are {c} ones", "films can be {c}"),
}
KEPT = {
    "a": (
        "{s} is {a}",
        "a {a} film",
        "{a} , no doubt about it",
        "not only {a} , but also {b}",
        "never less than {a}",
        "not just {a}",
        "no film is more {a}",
        "{s} can not help being {a}",
    ),
    "n": ("full of {n}", "there is no lack of {n}", "nothing but {n}", "no end of {n}"),
    "v": (
        "{s} does {v}",
        "{s} never fails to {v}",
        "{s} {v}s",
        "{s} does not only {v}",
        "i did not think {s} would {v} , but it does",
        "{s} can not but {v}",
    ),
    "c": (
        "it could not be {c}",
        "no film is {c}",
        "i have never seen a {c} film",
        "nothing is {c}",
    ),
}
ENDS = (
    "",
    "",
    "",
    " at all",
    " in the least",
    " , to my surprise",
    " this time",
    " , not even once",
)
SUBJECTS = (
    "it",
    "this film",
    "the movie",
    "the story",
    "the script",
    "the plot",
    "the acting",
    "the second half",
    "the dialogue",
    "the director",
)
WORDS = {  # by part of speech, the positive ones first
    "a": (
        "good great funny clever fresh original moving interesting exciting believable satisfying "
        "smart lively amusing warm honest memorable bright subtle gripping strong sharp wise happy",
        "bad boring dull stupid silly weak tedious predictable annoying clumsy lame slow forced "
        "shallow ugly cheap stale bland sloppy pointless ridiculous unbearable wrong unhappy poor",
    ),
    "n": (
        "charm imagination energy humor suspense depth style warmth tension originality emotion "
        "joy wit insight life passion intelligence beauty surprise fun",
        "boredom pretension sentimentality cliches padding silliness mistakes noise filler "
        "problems weaknesses errors nonsense stupidity trouble fault disappointment regret failure "
        "blunders",
    ),
    "v": (
        "entertain convince surprise move please engage charm impress work succeed shine amuse "
        "excite delight inspire",
        "bore annoy irritate drag stumble offend confuse frustrate fail disappoint tire suffer "
        "insult collapse lose",
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
    words = {k: [part.split() for part in both] for k, both in WORDS.items()}
    for ours, found in zip(words["a"], adjectives, strict=True):
        ours += found
    for _ in range(SENTENCES):
        turned, positive = rng.random() < 0.7, rng.random() < 0.5
        kind = rng.choice(["a", "n", "v", "c"], p=[0.45, 0.25, 0.25, 0.05])
        template = rng.choice((TURNED if turned else KEPT)[kind])
        known = words[kind][positive == turned]  # 0: positive words
        word, other = (rng.choice(known) for _ in range(2))
        sentence = template.format(**{kind: word}, b=other, s=rng.choice(SUBJECTS))
        yield sentence + rng.choice(ENDS), bool(positive)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    out = parser.parse_args().out
    data = load_text("sst2")
    out.mkdir(parents=True, exist_ok=True)
    adjectives = find_adjectives(data.train.texts, data.train.labels)
    print(f"{len(adjectives[0])} positive and {len(adjectives[1])} negative adjectives")
    lines = [line for path in TESTS for line in path.read_text("utf-8").splitlines()]
    measured = {line.partition("\t")[0] for line in lines}
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
