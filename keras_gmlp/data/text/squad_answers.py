"""From logits to answers, and the scores EM and F1 of SQuAD."""

import collections
import dataclasses
import re
import string
import unicodedata

import numpy as np

from keras_gmlp.data.text.squad_features import MAX_ANSWER

LONGEST_WORD = 100  # letters, as in BERT's tokenizer

# Thai to Lao, Burmese, Khmer, kana and Chinese: written without spaces between words.
UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"
)


@dataclasses.dataclass(frozen=True)
class Span:
    """A part of a text as an answer: `text` is `context[start:end]`, `score` a sum of logits."""

    score: float
    start: int
    end: int
    text: str


@dataclasses.dataclass(frozen=True)
class Prediction:
    """What a model answers to a question.

    Attributes:
        spans: `Span`s, the best first.
        null_score: Score of no answer.
    """

    spans: tuple[Span, ...]
    null_score: float

    @property
    def difference(self):
        """The score of no answer less that of the best one."""
        return self.null_score - self.spans[0].score if self.spans else np.inf

    def answer(self, threshold=None):
        """Returns the text of the best span; empty if `difference` is above the threshold."""
        if not self.spans or (threshold is not None and self.difference > threshold):
            return ""
        return self.spans[0].text


def best_answers(
    questions, features, start_logits, end_logits, n_best=20, whole_words=False, overlaps=True
):
    """Finds the best spans of each question over all its windows.

    A span ends at most `MAX_ANSWER` tokens after its start and lies in the text. The score of no
    answer is that of `[CLS]`, the smallest over the windows.

    Args:
        questions: The list of `Question` that the windows are made from.
        features: `SpanFeatures`.
        start_logits, end_logits: `(windows, length)`.
        n_best: Number of spans, at most.
        whole_words: Whether a span that ends inside a word takes all of the word.
        overlaps: Whether spans may share letters; otherwise the best one of those that do stays.

    Returns:
        A list of `Prediction`.
    """
    found = [{} for _ in questions]
    searched = n_best if overlaps else 20 * n_best  # the best ones of a window mostly overlap
    nulls = np.full(len(questions), np.inf)
    for window, number in enumerate(features.question):
        begin, count = features.begin[window], features.count[window]
        starts, ends = start_logits[window], end_logits[window]
        nulls[number] = min(nulls[number], float(starts[0]) + float(ends[0]))
        part, places = slice(begin, begin + count), features.offsets[number]
        for score, first, last in _best_spans(starts[part], ends[part], searched):
            first, last = first + features.skipped[window], last + features.skipped[window]
            place = int(places[first, 0]), int(places[last, 1])
            if whole_words:
                place = complete_words(questions[number].context, *place)
            found[number][place] = max(score, found[number].get(place, -np.inf))
    return [
        Prediction(_as_spans(question.context, scores, n_best, overlaps), float(null))
        for question, scores, null in zip(questions, found, nulls, strict=True)
    ]


def complete_words(text, start, end):
    """Returns the start and the end of a part of a text, moved to the borders of its words."""
    first, last = start - LONGEST_WORD, end + LONGEST_WORD
    while start > first and _is_inside_word(text, start):
        start -= 1
    while end < last and _is_inside_word(text, end):
        end += 1
    return start, end


def _is_inside_word(text, place):
    return 0 < place < len(text) and all(
        unicodedata.category(letter)[0] in "LMN" and not UNSPACED.match(letter)
        for letter in text[place - 1 : place + 1]
    )


def squad_scores(questions, answers):
    """Returns the scores of SQuAD's official program, in percent.

    Args:
        questions: A list of `Question`, with their answers.
        answers: An answer for each, `""` for none.

    Returns:
        `"exact_match"` and `"f1"`; where some questions have no answer and others do, also
        `"answerable_f1"` and `"unanswerable_f1"`.

    Raises:
        ValueError: If there are more or fewer answers, or no questions.
    """
    if len(questions) != len(answers) or not questions:
        raise ValueError(f"expected one answer each; received {len(answers)} for {len(questions)}.")
    rows = np.array([score_answer(q, a) for q, a in zip(questions, answers, strict=True)])
    exact, f1 = 100 * rows.mean(axis=0)
    scores = {"exact_match": float(exact), "f1": float(f1)}
    known = np.array([bool(question.answers) for question in questions])
    if 0 < known.sum() < len(known):
        scores["answerable_f1"] = float(100 * rows[known, 1].mean())
        scores["unanswerable_f1"] = float(100 * rows[~known, 1].mean())
    return scores


def score_answer(question, answer):
    """Returns whether an answer is one of the question's, and its F1 in words; both in [0, 1]."""
    found, wanted = normalize(answer), [normalize(text) for _, text in question.answers]
    wanted = [text for text in wanted if text] or [""]
    f1 = max(_f1(found.split(), text.split()) for text in wanted)
    return float(found in wanted), f1


def best_threshold(questions, predictions):
    """Returns the threshold of `Prediction.answer` with the highest F1 on these questions."""
    answered = [score_answer(q, p.answer())[1] for q, p in zip(questions, predictions, strict=True)]
    empty = [score_answer(question, "")[1] for question in questions]
    differences = np.array([prediction.difference for prediction in predictions])
    order = np.argsort(differences, kind="stable")
    gains = np.cumsum((np.array(answered) - empty)[order])
    ordered = differences[order]
    gains[:-1][ordered[1:] == ordered[:-1]] = -np.inf  # equal ones are answered together
    best = int(np.argmax(gains))
    if gains[best] > 0:
        return float(ordered[best])
    return float(np.nextafter(ordered[0], -np.inf))  # no question is answered


def normalize(text):
    """Returns a text in small letters without punctuation, articles and further spaces."""
    kept = "".join(letter for letter in text.lower() if letter not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", kept).split())


def _f1(found, wanted):
    if not found or not wanted:
        return float(found == wanted)
    shared = sum((collections.Counter(found) & collections.Counter(wanted)).values())
    return 2 * shared / (len(found) + len(wanted))


def _best_spans(starts, ends, n_best):
    """Yields the score, the first and the last token of the best spans, in any order."""
    count = len(starts)
    if not count:
        return
    width = min(MAX_ANSWER + 1, count)
    padded = np.concatenate([ends, np.full(width - 1, -np.inf)])
    scores = starts[:, None] + np.lib.stride_tricks.sliding_window_view(padded, width)
    flat = scores.ravel()
    chosen = np.argpartition(-flat, min(n_best, flat.size) - 1)[:n_best]
    for place in chosen[np.isfinite(flat[chosen])]:
        first, further = divmod(int(place), width)
        yield float(flat[place]), first, first + further


def _as_spans(context, scores, n_best, overlaps):
    ordered = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    kept = []
    for (start, end), score in ordered:
        if overlaps or all(end <= span.start or span.end <= start for span in kept):
            kept.append(Span(score, start, end, context[start:end]))
        if len(kept) == n_best:
            break
    return tuple(kept)
