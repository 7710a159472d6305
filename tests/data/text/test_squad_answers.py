import dataclasses
import importlib
import itertools
import warnings

import numpy as np
import pytest
from word_tokenizer import WordTokenizer

from keras_gmlp.benchmark.runtimes import import_torchvision
from keras_gmlp.data.text.squad import Question
from keras_gmlp.data.text.squad_answers import (
    Prediction,
    Span,
    best_answers,
    best_threshold,
    complete_words,
    score_answer,
    squad_scores,
)
from keras_gmlp.data.text.squad_features import MAX_ANSWER, span_features

WORDS = ["The", "cat", "a", "New", "York", "U.S.", "an", "1,000", "café", "it's", "$5", "naive"]


@pytest.fixture(scope="module")
def torchmetrics_squad():
    """The function `squad` of torchmetrics, an independent reference."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # from the imports
        try:
            import_torchvision()
            return importlib.import_module("torchmetrics.functional.text").squad
        except ImportError:
            pytest.skip("torchmetrics is not installed")


def phrase(random, most=5):
    return " ".join([*random.choice(WORDS, random.integers(0, most)), "word"])


def question(*answers, context="some text"):
    return Question("What?", context, tuple((0, text) for text in answers))


def test_scores_are_those_of_torchmetrics(torchmetrics_squad):
    random, questions, answers = np.random.default_rng(0), [], []
    for _ in range(1000):
        wanted = [phrase(random) for _ in range(random.integers(1, 4))]
        kinds = [wanted[0].lower() + "!", phrase(random), " ".join(wanted[0].split()[1:]), ""]
        questions.append(question(*wanted))
        answers.append(kinds[random.integers(4)])
    found = squad_scores(questions, answers)
    references = [
        {"answers": {"text": [text for _, text in q.answers], "answer_start": [0]}, "id": str(n)}
        for n, q in enumerate(questions)
    ]
    predictions = [{"prediction_text": text, "id": str(n)} for n, text in enumerate(answers)]
    expected = torchmetrics_squad(predictions, references)
    assert found == {
        name: pytest.approx(float(value), abs=1e-3) for name, value in expected.items()
    }
    assert 10 < found["exact_match"] < found["f1"] < 90


def test_scores_of_one_answer():
    for wanted, answer, expected in (
        (["the cat"], "Cat.", (1, 1)),
        (["black cat", "cat"], "a black dog", (0, 0.5)),
        (["cat cat"], "cat", (0, 2 / 3)),
        ([], "", (1, 1)),
        ([], "cat", (0, 0)),
        (["cat"], "", (0, 0)),
        (["It's an  apple, caf\u00e9"], "its apple CAF\u00c9!", (1, 1)),
        (["U.S. theatre"], "us theatre", (1, 1)),
        (["the"], "a", (1, 1)),  # an answer of no words is no answer
        (["the", "cat"], "a", (0, 0)),
    ):
        assert score_answer(question(*wanted), answer) == pytest.approx(expected)


def test_scores_with_and_without_answers():
    scores = squad_scores([question("cat"), question(), question()], ["cat", "", "dog"])
    assert scores == pytest.approx(
        {"exact_match": 200 / 3, "f1": 200 / 3, "answerable_f1": 100, "unanswerable_f1": 50}
    )
    with pytest.raises(ValueError, match="expected one answer each; received 0 for 1"):
        squad_scores([question("cat")], [])


def by_hand(questions, features, starts, ends):
    """Returns the best span of each question over all pairs of tokens."""
    best = {}
    for window, number in enumerate(features.question):
        places, skipped = features.offsets[number], features.skipped[window]
        begin, end = features.begin[window], features.begin[window] + features.count[window]
        for first in range(begin, end):
            for last in range(first, min(first + MAX_ANSWER + 1, end)):
                score = starts[window, first] + ends[window, last]
                start, stop = (token - begin + skipped for token in (first, last))
                place = places[start, 0], places[stop, 1]
                best[number] = max(best.get(number, (-np.inf,)), (score, *place))
    return [best[number] for number in range(len(questions))]


def test_best_spans_are_those_of_a_search_by_hand():
    words = " ".join(f"w{n}" for n in range(120))
    questions = [Question("What is it?", words[: 90 * n]) for n in range(1, 5)]
    features = span_features(questions, WordTokenizer(), 64, question_length=8)
    assert len(features) > len(questions)
    random = np.random.default_rng(0)
    starts, ends = random.normal(size=(2, *features.token_ids.shape)).astype("float32")
    found = best_answers(questions, features, starts, ends)
    expected = by_hand(questions, features, starts, ends)
    for number, (prediction, (score, start, end)) in enumerate(zip(found, expected, strict=True)):
        best = prediction.spans[0]
        assert (best.start, best.end) == (start, end)
        assert best.score == pytest.approx(score)
        assert best.text == questions[number].context[start:end] == prediction.answer()
        scores = [span.score for span in prediction.spans]
        assert len(scores) == 20
        assert scores == sorted(scores, reverse=True)
        assert len({(span.start, span.end) for span in prediction.spans}) == 20
        nulls = (starts + ends)[features.question == number, 0]
        assert prediction.null_score == pytest.approx(nulls.min())


def test_answer_is_cut_from_the_original_text():
    context = "The Caf\u00e9 (in  PARIS) is new."
    asked = [Question("Where?", context)]
    features = span_features(asked, WordTokenizer(), 64, question_length=8)
    starts, ends = np.zeros((2, 1, 64))
    starts[0, features.begin[0] + 1] = ends[0, features.begin[0] + 5] = 1
    starts[0, 1] = ends[0, 2] = 9  # in the question
    (prediction,) = best_answers(asked, features, starts, ends)
    assert prediction.answer() == "Caf\u00e9 (in  PARIS)"


def test_words_are_completed():
    for text, part, expected in (
        ("nobody knows", "no", "nobody"),
        ("nobody knows", "body", "nobody"),
        ("in the 1990s.", "1990", "1990s"),
        ("Caf\u00e9, cafe\u0301s", "cafe", "cafe\u0301s"),
        (
            "\u0928\u092e\u0938\u094d\u0924\u0947 \u092d\u093e\u0930\u0924",
            "\u0928\u092e",
            "\u0928\u092e\u0938\u094d\u0924\u0947",
        ),
        ("\u6211\u5728\u6771\u4eac", "\u6771\u4eac", "\u6771\u4eac"),  # without spaces
        ("costs $5 (about)", "$5", "$5"),
        ("two words", "two words", "two words"),
    ):
        start = text.index(part)
        first, last = complete_words(text, start, start + len(part))
        assert text[first:last] == expected
    assert complete_words("a" * 1000, 500, 501) == (400, 601)  # not without end


def test_answers_of_whole_words_without_overlaps():
    context = "Nobody lives in Rome, somebody in Oslo."
    asked = [Question("Who?", context)]
    features = span_features(asked, WordTokenizer(), 64, question_length=8)
    # As if the tokens were pieces: No body lives in Rome ...
    offsets = np.array([(0, 2), (2, 6), (7, 12), (13, 15), (16, 20), (22, 26), (26, 30)])
    features = dataclasses.replace(features, offsets=[offsets], count=np.array([7], "int32"))
    starts, ends = np.full((2, 1, 64), -9.0)
    first = features.begin[0]
    starts[0, first], ends[0, first] = 5, 5  # No
    starts[0, first + 6], ends[0, first + 6] = 3, 3  # body, of somebody
    ends[0, first + 4] = 4  # Nobody lives in Rome
    (cut,) = best_answers(asked, features, starts, ends)
    assert [span.text for span in cut.spans[:2]] == ["No", "Nobody lives in Rome"]
    (whole,) = best_answers(asked, features, starts, ends, whole_words=True, overlaps=False)
    assert [span.text for span in whole.spans[:2]] == ["Nobody", "somebody"]
    assert whole.spans[0].score == 10
    places = sorted((span.start, span.end) for span in whole.spans)
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(places))


def test_text_without_tokens_has_no_answer():
    asked = [Question("Where?", "\u200b")]
    features = span_features(asked, WordTokenizer(), 64, question_length=8)
    features = dataclasses.replace(features, count=np.zeros(1, "int32"))
    (prediction,) = best_answers(asked, features, np.zeros((1, 64)), np.zeros((1, 64)))
    assert (prediction.spans, prediction.answer(), prediction.answer(0.0)) == ((), "", "")


def prediction(difference, text="cat"):
    return Prediction((Span(0.0, 0, 3, text),), difference)


def test_threshold():
    found = [prediction(1.5).answer(threshold) for threshold in (None, 1.5, 1.4)]
    assert found == ["cat", "cat", ""]


@pytest.mark.parametrize("seed", range(2))
def test_best_threshold_is_that_of_a_search(seed):
    random = np.random.default_rng(seed)
    known = random.random(40) < 0.5
    questions = [question("cat") if answer else question() for answer in known]
    predictions = [
        prediction(float(random.integers(-4, 5)) - 2 * answer, random.choice(["cat", "dog"]))
        for answer in known
    ]

    def f1(threshold):
        return squad_scores(questions, [p.answer(threshold) for p in predictions])["f1"]

    tried = max(f1(threshold) for threshold in np.arange(-9, 9, 0.5))
    assert f1(best_threshold(questions, predictions)) == pytest.approx(tried)


def test_best_threshold_without_answers():
    predictions = [prediction(-3.0), prediction(2.0)]
    threshold = best_threshold([question(), question()], predictions)
    assert [p.answer(threshold) for p in predictions] == ["", ""]
    threshold = best_threshold([question("cat"), question("cat")], predictions)
    assert [p.answer(threshold) for p in predictions] == ["cat", "cat"]
