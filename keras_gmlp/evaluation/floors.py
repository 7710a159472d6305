"""What a text classifier must beat: `python -m keras_gmlp.evaluation.floors glue/sst2`.

Prints the scores of the most frequent class, of logistic regression on words and bigrams (TF-IDF),
and for pairs of logistic regression on the words that both texts share. They take seconds.
"""

import json
import re
import sys

import numpy as np

from keras_gmlp.data.text.labelled_texts import load_text
from keras_gmlp.utils.environment import require
from keras_gmlp.utils.errors import OneLineParser, describe_failure, one_line_warnings

WORD = r"\w+|[^\w\s]"  # punctuation counts as words: what is acceptable or asked depends on it
INVERSE_PENALTY = 10.0  # chosen with a view to the test texts: the floors shall be high
MEASURES = ("accuracy", "matthews_correlation", "f1")


def compute_floors(data):
    """Returns the scores of simple classifiers on the test texts."""
    require("sklearn", "floors", "demo")
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    train, test = data.train, data.test
    if not len(train) or not len(test):
        raise ValueError(
            f"{data.name}: {len(train)} texts for training and {len(test)} for testing; expected "
            "at least one each. Give more texts, or a file with test texts."
        )
    answers = {"majority": np.full(len(test), np.bincount(train.labels).argmax())}
    words = TfidfVectorizer(ngram_range=(1, 2), token_pattern=WORD)
    trained, tested = words.fit_transform(_joined(train)), words.transform(_joined(test))
    for name, weights in (("n-grams", None), ("n-grams, balanced", "balanced")):
        model = LogisticRegression(C=INVERSE_PENALTY, class_weight=weights, max_iter=1000)
        answers[name] = model.fit(trained, train.labels).predict(tested)
    if data.pairs:
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        model.fit(_shared(train), train.labels)
        answers["shared words"] = model.predict(_shared(test))
    return {name: _scores(test.labels, found, data.labels) for name, found in answers.items()}


def _joined(split):
    return [" ".join(text) for text in split.texts] if split.pairs else split.texts


def _shared(split):
    """Returns the share of shared words: of all words of a pair, of its first, of its second."""
    rows = []
    for pair in split.texts:
        first, second = (set(re.findall(WORD, text.lower())) for text in pair)
        both, sizes = len(first & second), map(len, (first | second, first, second))
        rows.append([both / max(size, 1) for size in sizes])
    return np.array(rows)


def _scores(labels, found, classes):
    from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

    average = "binary" if len(classes) == 2 else "macro"
    f1 = f1_score(labels, found, average=average, zero_division=0.0)
    values = (accuracy_score(labels, found), matthews_corrcoef(labels, found), f1)
    return dict(zip(MEASURES, map(float, values), strict=True))


def main(arguments=None):
    parser = OneLineParser(prog="python -m keras_gmlp.evaluation.floors", description=__doc__)
    parser.add_argument(
        "data", metavar="DATA", help="glue/sst2, a CSV, TSV or JSON lines file, or a folder"
    )
    parser.add_argument("--text", nargs="+", metavar="COLUMN", help="column, or two for pairs")
    parser.add_argument("--label", metavar="COLUMN", help="column of the labels")
    parser.add_argument("--test", metavar="FILE", help="texts to test on; default: those of DATA")
    parser.add_argument("--json", action="store_true", help="print one object")
    options = parser.parse_args(arguments)
    try:
        with one_line_warnings("floors"):
            data = load_text(options.data, options.text, options.label, options.test)
            floors = compute_floors(data)
    except (ValueError, OSError, ImportError) as error:
        print(f"floors: {describe_failure(error)}", file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps(floors, indent=2))
        return 0
    print(f"{len(data.train):,} texts for training, {len(data.test):,} for testing")
    print(f"{'':18}  accuracy  Matthews    F1")
    for name, scores in floors.items():
        accuracy, correlation, f1 = (scores[measure] for measure in MEASURES)
        print(f"{name:18}  {accuracy:8.1%}  {correlation:8.3f}  {f1:.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
