"""Blanks that a language model fills with a right word, and what classifiers of texts must beat.

cloze   each line of FILE has a text with one [MASK], a tab, and the right words with commas between
floors  the most frequent class, logistic regression on words and bigrams (TF-IDF), and for pairs on
        the words that both texts share; DATA is as --data of apps/train.py, such as glue/sst2
"""

import re
import sys
from pathlib import Path

import numpy as np

from benchmarks.harness import make_parser, show_table

WORD = r"\w+|[^\w\s]"  # punctuation counts as words: what is acceptable or asked depends on it
INVERSE_PENALTY = 10.0  # chosen with a view to the test texts: the floors shall be high


def measure_cloze(model, path):
    """Returns a row for each text: the rank of the first right word among ten."""
    rows = []
    for line in filter(str.strip, Path(path).read_text("utf-8").splitlines()):
        text, _, words = line.partition("\t")
        right = [word.strip().lower() for word in words.split(",")]
        found = [filled["token_str"].lower() for filled in model.fill_mask(text, 10)]
        ranks = [n for n, word in enumerate(found, 1) if word in right]
        rows.append({"": text, "right": right[0], "rank": ranks[0] if ranks else "-"})
    return rows


def measure_floors(data):
    """Returns a row for each simple classifier: its scores on the test texts."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    train, test = data.train, data.test
    answers = {"majority": np.full(len(test), np.bincount(train.labels).argmax())}
    words = TfidfVectorizer(ngram_range=(1, 2), token_pattern=WORD)
    trained, tested = words.fit_transform(join_pairs(train)), words.transform(join_pairs(test))
    for name, weights in (("n-grams", None), ("n-grams, balanced", "balanced")):
        model = LogisticRegression(C=INVERSE_PENALTY, class_weight=weights, max_iter=1000)
        answers[name] = model.fit(trained, train.labels).predict(tested)
    if data.pairs:
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        model.fit(share_words(train), train.labels)
        answers["shared words"] = model.predict(share_words(test))
    average = "binary" if len(data.labels) == 2 else "macro"
    return [
        {
            "": name,
            "accuracy, %": 100 * accuracy_score(test.labels, found),
            "Matthews correlation": matthews_corrcoef(test.labels, found),
            "F1, %": 100 * f1_score(test.labels, found, average=average, zero_division=0.0),
        }
        for name, found in answers.items()
    ]


def join_pairs(split):
    return [" ".join(text) for text in split.texts] if split.pairs else split.texts


def share_words(split):
    """Returns the share of shared words: of all words of a pair, of its first, of its second."""
    rows = []
    for pair in split.texts:
        first, second = (set(re.findall(WORD, text.lower())) for text in pair)
        both, sizes = len(first & second), map(len, (first | second, first, second))
        rows.append([both / max(size, 1) for size in sizes])
    return np.array(rows)


def main(arguments=None):
    parser = make_parser("language", __doc__)
    questions = parser.add_subparsers(dest="question", required=True, metavar="cloze | floors")
    cloze = questions.add_parser("cloze")
    cloze.add_argument("model", metavar="RUN", help="folder of a run, or an included model")
    cloze.add_argument("file", metavar="FILE")
    floors = questions.add_parser("floors")
    floors.add_argument("data", metavar="DATA")
    floors.add_argument("--text", nargs="+", metavar="COLUMN", help="a column, or two for pairs")
    floors.add_argument("--label", metavar="COLUMN", help="column of the labels")
    options = parser.parse_args(arguments)
    if options.question == "cloze":
        from keras_gmlp.weights.loading import load

        rows = measure_cloze(load(options.model), options.file)
        right = [row["rank"] for row in rows if row["rank"] != "-"]
        rows += [{"": f"first {k}", "rank": sum(r <= k for r in right)} for k in (1, 3, 10)]
    else:
        from keras_gmlp.data.text.labelled_texts import load_text

        rows = measure_floors(load_text(options.data, options.text, options.label))
    show_table(rows, parser, arguments or sys.argv[1:], options.csv)
    return 0


if __name__ == "__main__":
    sys.exit(main())
