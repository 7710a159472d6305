"""Questions with their texts as rows of tokens: `[CLS] question [SEP] part of the text [SEP]`."""

import dataclasses

import numpy as np

LENGTH, STRIDE, QUESTION = 384, 128, 64  # tokens, as in BERT
MAX_ANSWER = 30  # the last token of an answer is at most so many after its first
TOGETHER = 1024  # texts that are tokenized at a time


@dataclasses.dataclass(frozen=True)
class SpanFeatures:
    """Windows of texts with their questions.

    Attributes:
        token_ids: int32 `(windows, length)`.
        targets: int32 `(windows, 2)`: positions of the answer's first and last token, `(0, 0)` if
            the window does not hold all of it.
        question: int32 `(windows,)`: index of the question.
        begin, count: int32 `(windows,)`: position of the first token of the text, and how many
            tokens of it the window has.
        skipped: int32 `(windows,)`: tokens of the text before the window.
        offsets: For each question, int32 `(tokens, 2)`: each token is `context[start:stop]`.
        cut: For each question, how many of its tokens were left out.
    """

    token_ids: np.ndarray
    targets: np.ndarray
    question: np.ndarray
    begin: np.ndarray
    count: np.ndarray
    skipped: np.ndarray
    offsets: list
    cut: list

    def __len__(self):
        return len(self.token_ids)


def span_features(questions, tokenizer, length=LENGTH, stride=STRIDE, question_length=QUESTION):
    """Returns the windows of questions and their texts.

    A text that does not fit becomes several windows, which overlap by `MAX_ANSWER` tokens or more.

    Args:
        questions: A list of `Question`. The first answer is the target.
        tokenizer: A `Tokenizer`.
        length: Tokens in a window.
        stride: Tokens from one window to the next, at most.
        question_length: Tokens of a question; a longer one loses its end.

    Returns:
        `SpanFeatures` in the order of the questions.

    Raises:
        ValueError: If `length` leaves no room for the text. One line.
    """
    least = question_length + 3 + MAX_ANSWER
    if length <= least or stride < 1:
        raise ValueError(
            f"expected a length above {least}, for a question of {question_length} tokens and an "
            f"answer of {MAX_ANSWER}, and a stride from 1 on; received {length} and {stride}."
        )
    contexts = _encode(tokenizer, [question.context for question in questions])
    asked = _encode(tokenizer, [question.question for question in questions])
    rows, columns, offsets, cut = [], [], [], []
    for number, question in enumerate(questions):
        ids, places = contexts[question.context]
        words = asked[question.question][0]
        cut.append(max(0, len(words) - question_length))
        head = [tokenizer.cls_id, *words[:question_length], tokenizer.sep_id]
        room = length - len(head) - 1
        step = min(stride, room - MAX_ANSWER)
        answer = _locate(places, question.answers)
        offsets.append(places)
        for skipped in range(0, max(len(ids) - room, 0) + step, step):
            part = ids[skipped : skipped + room]
            row = np.full(length, tokenizer.pad_id, "int32")
            row[: len(head) + len(part) + 1] = np.concatenate([head, part, [tokenizer.sep_id]])
            rows.append(row)
            inside = answer and skipped <= answer[0] and answer[1] < skipped + len(part)
            target = [token - skipped + len(head) for token in answer] if inside else (0, 0)
            columns.append((*target, number, len(head), len(part), skipped))
            if skipped + room >= len(ids):
                break
    token_ids = np.stack(rows) if rows else np.zeros((0, length), "int32")
    columns = np.array(columns, "int32").reshape(-1, 6)
    return SpanFeatures(token_ids, columns[:, :2], *columns[:, 2:].T, offsets, cut)


def _encode(tokenizer, texts):
    """Returns the ids and the offsets of each text, without added tokens."""
    texts, found = list(dict.fromkeys(texts)), {}
    for start in range(0, len(texts), TOGETHER):
        part = texts[start : start + TOGETHER]
        for text, encoding in zip(part, tokenizer.encode_batch(part), strict=True):
            found[text] = encoding.ids[1:-1], np.asarray(encoding.offsets[1:-1]).reshape(-1, 2)
    return found


def _locate(offsets, answers):
    """Returns the first and the last token of the first answer, or `None`."""
    if not answers or not len(offsets):
        return None
    start, text = answers[0]
    first = np.searchsorted(offsets[:, 1], start, side="right")
    last = np.searchsorted(offsets[:, 0], start + len(text), side="left") - 1
    return (int(first), int(last)) if first <= last else None
