"""Accuracy of classifiers that learn from a hundred or a thousand labelled texts.

n-grams      logistic regression on words and bigrams (TF-IDF)
vectors      logistic regression on `keras_gmlp.text.embed` of the included amlp_nano-wiki
fine-tuned   all layers of amlp_nano-wiki, recipe finetune of apps/train.py, with more epochs
MiniLM       with --minilm: logistic regression on the mean of its tokens

SST-2       sentences and phrases of film reviews, good or bad; tested on 872 sentences
questions   which of 35 articles of Wikipedia a question is about: SQuAD 2.0's validation split;
            tested on the questions about every tenth paragraph, trained on others

A draw takes texts of each class by its share; all ways get the same, and the same test texts. Each
regression chooses its strength by cross-validation on the drawn texts. FILE gets a row for each
draw; rows that it has are not made again. The table has mean and standard deviation over the draws.
"""

import csv
import dataclasses
import functools
import itertools
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.harness import make_parser, show_table
from keras_gmlp.data import tfds
from keras_gmlp.data.text.labelled_texts import TextData, TextSplit, load_text
from keras_gmlp.data.text.tokenizer import Tokenizer
from keras_gmlp.utils.sources import find_shipped

MODEL = "amlp_nano-wiki/model.keras"
EPOCHS = {100: 20, 1000: 5}  # by the number of labels
DRAWS = 5
LENGTH = 64  # tokens
KEYS = ("way", "set", "labels", "seed")


def read_questions():
    """Returns the questions of SQuAD by their articles, a `TextData`."""
    builder = tfds.open_set("squad/v2.0", None, "a file", lambda features: None)
    rows = list(tfds.read_split(builder, "validation").as_numpy_iterator())
    titles = sorted({row["title"] for row in rows})
    paragraphs = [(row["title"], row["context"]) for row in rows]
    tested = set(sorted(set(paragraphs))[::10])
    texts = [str(row["question"], "utf-8") for row in rows]
    split = TextSplit(texts, [titles.index(row["title"]) for row in rows])
    is_tested = np.array([paragraph in tested for paragraph in paragraphs])
    parts = (split.take(np.flatnonzero(places)) for places in (~is_tested, is_tested))
    return TextData("questions", tuple(str(title, "utf-8") for title in titles), *parts)


SETS = {"SST-2": functools.partial(load_text, "glue/sst2"), "questions": read_questions}


def draw_texts(data, number, seed):
    """Returns the data with so many of the training texts."""
    from sklearn.model_selection import train_test_split

    split, places = data.train, np.arange(len(data.train))
    options = {"train_size": number, "random_state": seed, "stratify": split.labels}
    return dataclasses.replace(data, train=split.take(train_test_split(places, **options)[0]))


def regress(prepare, strengths, data, read):
    """Returns the classes of the test texts by a logistic regression on what is read of texts."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV, KFold
    from sklearn.pipeline import make_pipeline

    model = make_pipeline(prepare, LogisticRegression(max_iter=1000))
    folds = KFold(3, shuffle=True, random_state=0)
    search = GridSearchCV(model, {"logisticregression__C": strengths}, cv=folds)
    search.fit(read(tuple(data.train.texts)), data.train.labels)
    return search.predict(read(tuple(data.test.texts)))


def learn_words(data, seed):
    """Returns the classes of the test texts by their words and bigrams."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    return regress(TfidfVectorizer(ngram_range=(1, 2)), (1, 10, 100), data, list)


def learn_vectors(embed, data, seed):
    """Returns the classes of the test texts by the vectors of a function."""
    from sklearn.preprocessing import StandardScaler

    return regress(StandardScaler(), (0.001, 0.01, 0.1, 1), data, embed)


def run_by_length(tokenizer, texts, run):
    """Returns what a model computes of texts, those of a length together: none has padding."""
    ids = [encoding.ids[:LENGTH] for encoding in tokenizer.encode_batch(texts)]
    lengths, found = np.array([*map(len, ids)]), {}
    for length in np.unique(lengths):
        places = np.flatnonzero(lengths == length)
        found |= dict(zip(places, run(np.array([ids[i] for i in places])), strict=True))
    return np.stack([found[place] for place in range(len(ids))])


def embed_own(texts):
    """Returns the vectors of the included language model, as `keras_gmlp.text.embed` does."""
    from keras_gmlp import load
    from keras_gmlp.models.language_model import text_features

    start = load(find_shipped(MODEL))
    return run_by_length(start.tokenizer, texts, text_features(start.model).predict_on_batch)


def embed_minilm(model, vocabulary, texts):
    """Returns the vectors of a MiniLM in ONNX, the means of its tokens."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options)

    def run(ids):
        arrays = {"input_ids": ids, "attention_mask": ids**0, "token_type_ids": 0 * ids}
        return session.run(None, arrays)[0].mean(1)

    return run_by_length(Tokenizer.load(vocabulary), texts, run)


def fine_tune(data, seed):
    """Returns the classes of the test texts by the fine-tuned language model."""
    import keras

    from keras_gmlp import load, text
    from keras_gmlp.training.pipeline import fit, prepare_fit
    from keras_gmlp.training.recipes import find_recipe, override

    changes = {"epochs": EPOCHS[len(data.train)], "seed": seed, "length": LENGTH}
    recipe = override(find_recipe("finetune", "text_classification"), changes)
    keras.utils.set_random_seed(seed)
    start = load(find_shipped(MODEL))
    data = dataclasses.replace(data, tokenizer=start.tokenizer)
    encoder = text.adapt(start.model, dtype=recipe.precision)
    model = text.text_classifier(encoder, len(data.labels))
    fit(*prepare_fit(model, data, recipe), data, recipe, [], verbose=0)
    return run_by_length(start.tokenizer, data.test.texts, model.predict_on_batch).argmax(1)


def read_rows(path):
    """Returns the rows of a file, dicts."""
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def add_rows(path, ways):
    """Measures what a file lacks; a way is a function from data and a seed to classes."""
    known = {tuple(row[key] for key in KEYS) for row in read_rows(path)}
    sets = {name: read() for name, read in SETS.items()}
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        if not known:
            writer.writerow((*KEYS, "accuracy", "seconds"))
        for row in itertools.product(ways, sets, EPOCHS, range(DRAWS)):
            if tuple(map(str, row)) in known:
                continue
            way, name, labels, seed = row
            data, began = draw_texts(sets[name], labels, seed), time.process_time()
            right = float(np.mean(ways[way](data, seed) == data.test.labels))
            row = (*row, round(right, 6), round(time.process_time() - began, 1))
            writer.writerow(row)
            file.flush()
            print(*row, file=sys.stderr)


def summarize(rows):
    """Returns a row of the table for each way."""
    found = {}
    for row in rows:
        cells = found.setdefault(row["way"], {})
        cells.setdefault(f"{row['set']}, {int(row['labels']):,}", []).append(
            100 * float(row["accuracy"])
        )
    return [
        {"": way} | {head: f"{np.mean(v):.1f} ± {np.std(v, ddof=1):.1f} %" for head, v in c.items()}
        for way, c in found.items()
    ]


def main(arguments=None):
    parser = make_parser("few_labels", __doc__)
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--minilm", nargs=2, metavar=("MODEL.onnx", "vocab.txt"))
    options = parser.parse_args(arguments)
    ways = {"n-grams": learn_words, "amlp_nano-wiki, fine-tuned": fine_tune}
    ways["amlp_nano-wiki, vectors"] = functools.partial(learn_vectors, functools.cache(embed_own))
    if options.minilm:
        embed = functools.cache(functools.partial(embed_minilm, *options.minilm))
        ways["MiniLM, vectors"] = functools.partial(learn_vectors, embed)
    add_rows(options.file, ways)
    show_table(summarize(read_rows(options.file)), parser, arguments or sys.argv[1:], options.csv)
    return 0


if __name__ == "__main__":
    sys.exit(main())
