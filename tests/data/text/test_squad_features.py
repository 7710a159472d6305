import numpy as np
import pytest
from word_tokenizer import WordTokenizer

from keras_gmlp.data.text.squad import Question
from keras_gmlp.data.text.squad_features import MAX_ANSWER, span_features

TOKENIZER = WordTokenizer()


def numbered(words, start=None, size=1):
    """Returns a question about a text of numbered words, with `size` of them as its answer."""
    texts = [f"word{n}" for n in range(words)]
    context = ",  ".join(texts)
    answers = ()
    if start is not None:
        place = context.index(f"word{start}")
        text = ",  ".join(texts[start : start + size])
        answers = ((place, text),)
    return Question("Which word is it?", context, answers)


def answer_of(features, question, window):
    """Returns the text between the targets of a window."""
    first, last = features.targets[window] - features.begin[window] + features.skipped[window]
    places = features.offsets[features.question[window]]
    return question.context[places[first, 0] : places[last, 1]]


def test_one_window():
    question = numbered(8, 3, 2)
    features = span_features([question], TOKENIZER, length=100, question_length=16)
    (row,) = features.token_ids
    asked = TOKENIZER.encode(question.question).ids
    text = TOKENIZER.encode(question.context).ids
    expected = [*asked, *text[1:]]
    assert row[: len(expected)].tolist() == expected
    assert not row[len(expected) :].any()
    assert (features.begin.tolist(), features.count.tolist()) == ([len(asked)], [len(text) - 2])
    assert answer_of(features, question, 0) == question.answers[0][1] == "word3,  word4"
    assert features.targets.tolist() == [[len(asked) + 6, len(asked) + 8]]  # with the commas
    assert (features.token_ids.dtype, features.targets.dtype) == ("int32", "int32")


@pytest.mark.parametrize("stride", [1000, 20, 7])
def test_windows_cover_the_text(stride):
    question = numbered(150, 60, 5)
    features = span_features([question], TOKENIZER, 64, stride, question_length=8)
    ids = TOKENIZER.encode(question.context).ids[1:-1]
    seen, found = np.zeros(len(ids), int), 0
    for window in range(len(features)):
        begin, count, skipped = (
            column[window] for column in (features.begin, features.count, features.skipped)
        )
        part = slice(skipped, skipped + count)
        np.testing.assert_array_equal(features.token_ids[window, begin : begin + count], ids[part])
        assert features.token_ids[window, begin + count] == TOKENIZER.sep_id
        seen[part] += 1
        if features.targets[window].any():
            assert answer_of(features, question, window) == question.answers[0][1]
            found += 1
    assert seen.min() >= 1
    assert found >= 1
    assert np.diff(features.skipped).max() <= stride
    overlap = features.skipped[:-1] + features.count[:-1] - features.skipped[1:]
    assert overlap.min() >= MAX_ANSWER
    without = ~features.targets.any(axis=1)
    assert without.any()
    assert (features.targets[without] == 0).all()


def test_every_short_answer_is_in_a_window():
    questions = [numbered(90, start, 15) for start in range(75)]  # 29 tokens with the commas
    features = span_features(questions, TOKENIZER, 64, question_length=8)
    answered = {
        n for n, target in zip(features.question, features.targets, strict=True) if target.any()
    }
    assert answered == set(range(75))


def test_no_answer_and_part_of_a_word():
    inside = Question("What?", "seventy-seven cats", ((9, "even"),))
    features = span_features([numbered(9), inside], TOKENIZER, 64, question_length=8)
    assert features.targets[0].tolist() == [0, 0]
    assert answer_of(features, inside, 1) == "seven"


def test_long_questions_lose_their_end():
    question = Question("why " * 50, "because", ((0, "because"),))
    features = span_features([question], TOKENIZER, 64, question_length=8)
    assert features.begin.tolist() == [10]


def test_no_questions():
    assert len(span_features([], TOKENIZER)) == 0


@pytest.mark.parametrize("options", [{"length": 97}, {"stride": 0}])
def test_bad_sizes(options):
    with pytest.raises(ValueError, match=r"expected a length above 97, .*; received"):
        span_features([numbered(9)], TOKENIZER, **options)
