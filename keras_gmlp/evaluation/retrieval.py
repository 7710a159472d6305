"""How often the nearest text is the one that belongs to a question, by vectors and by words."""

import numpy as np

from keras_gmlp.data.text.chosen_splits import TextSource, choose_questions
from keras_gmlp.data.text.squad import require_questions
from keras_gmlp.data.text.tokenizer import encode_rows
from keras_gmlp.inference.similarity import embed_rows, make_embedder
from keras_gmlp.models.saved import require_finite
from keras_gmlp.tasks.scores import round_scores
from keras_gmlp.tasks.text_task import draw_places
from keras_gmlp.utils.environment import require
from keras_gmlp.utils.progress import ProgressBar

RANKS = (1, 5, 10)
TOGETHER = 512  # questions whose cosines to all texts are in memory


def evaluate_retrieval(models, name, *, columns=None, split=None, limit=None):
    """Ranks all texts of a set of questions for each question, by vectors and by words (TF-IDF).

    `models` is a list of `inference.TextModel`; the other arguments are those of `evaluate_texts`.
    Returns a report that JSON can hold, with the scores of each model and, last, of TF-IDF.
    """
    require("sklearn", "evaluation", "demo")  # which counts words, after the work
    require_questions(name)
    questions, split = choose_questions(TextSource(name, columns), split)
    texts = list(dict.fromkeys(question.context for question in questions))
    places = {text: place for place, text in enumerate(texts)}
    questions = [questions[place] for place in draw_places(len(questions), limit)]
    own = [places[question.context] for question in questions]
    asked = [question.question for question in questions]
    rows = []
    for model in models:
        compare = compare_vectors(make_embedder(model), model, asked, texts)
        rows.append({"model": str(model.path), **score_ranks(compare, own)})
    rows.append({"model": "TF-IDF", **score_ranks(compare_words(asked, texts), own)})
    counts = {"questions": len(questions), "candidates": len(texts)}
    return {"data": str(name), "split": split, **counts, "models": rows}


def score_ranks(compare, own):
    """Returns the share of rows whose own column is among the largest 1, 5 and 10, a dict."""
    ranks = []
    for start in range(0, len(own), TOGETHER):
        columns = own[start : start + TOGETHER]
        similarities = compare(slice(start, start + len(columns)))
        best = similarities[range(len(columns)), columns][:, None]
        ranks += (similarities >= best).sum(1).tolist()  # what is equally near comes before it
    ranks = np.array(ranks)
    return round_scores({f"top{most}": np.mean(ranks <= most) for most in RANKS})


def compare_vectors(embed, model, firsts, seconds):
    """Returns a function from a slice of texts to their cosines to others' nearest windows."""
    windows, starts = make_windows(model.tokenizer, seconds, model.length)
    first_ids, _ = encode_rows(model.tokenizer, firsts, model.length)
    rows = np.concatenate([first_ids, windows])
    with ProgressBar("reading texts", len(rows)) as progress:
        vectors = embed_rows(embed, rows, progress.show)
    vectors = require_finite(vectors, model.path, "vectors")
    vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    queries, found = np.split(vectors, [len(first_ids)])
    return lambda part: np.maximum.reduceat(queries[part] @ found.T, starts, axis=1)


def make_windows(tokenizer, texts, length):
    """Returns the token ids of texts in windows that overlap by half, and each text's first."""
    rows, starts, room = [], [], length - 2
    for encoding in tokenizer.encode_batch(texts):
        ids, start = encoding.ids[1:-1], 0
        starts.append(len(rows))
        while True:
            part = ids[start : start + room]
            row = np.full(length, tokenizer.pad_id, "int32")
            row[: len(part) + 2] = [tokenizer.cls_id, *part, tokenizer.sep_id]
            rows.append(row)
            if start + room >= len(ids):
                break
            start = min(start + max(1, room // 2), len(ids) - room)
    return np.stack(rows), starts


def compare_words(firsts, seconds):
    """Returns a function from a slice of texts to their cosines of TF-IDF to others."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    words = TfidfVectorizer(sublinear_tf=True, token_pattern=r"\w+")
    found, queries = words.fit_transform(seconds).T, words.transform(firsts)
    return lambda part: (queries[part] @ found).toarray()
