"""Questions about texts: SQuAD 1.1 and 2.0, and files in SQuAD's own format."""

import dataclasses
import numbers
import os
from pathlib import Path

import numpy as np

from keras_gmlp.data.text.names import open_named
from keras_gmlp.utils.csv_tables import read_text
from keras_gmlp.utils.errors import check_text, naming_errors
from keras_gmlp.utils.files import parse_json
from keras_gmlp.utils.inputs import SPLITS, group_splits, list_suffix

SHARE = 0.2  # of the articles that are held out if no file holds test questions
NEEDED = {"context", "question", "id", "answers"}
SETS = ("squad", "xquad")  # of TensorFlow Datasets


@dataclasses.dataclass(frozen=True)
class Question:
    """A question about a text.

    Attributes:
        question: The question.
        context: The text that it is about.
        answers: Answers as `(start, text)`, where `context[start:]` starts with `text`. Empty if
            the text does not answer the question, or if the answer is not known.
        id: Name of the question.
        title: Title of the article that the text is from.

    Raises:
        ValueError: If the text or the question is empty. One line.
    """

    question: str
    context: str
    answers: tuple[tuple[int, str], ...] = ()
    id: str = ""
    title: str = ""

    def __post_init__(self):
        place = f"question {self.id!r}: " if self.id else ""
        for name in ("context", "question"):
            if not getattr(self, name).strip():
                raise ValueError(f"{place}the {name} is empty; expected text.")
            check_text(getattr(self, name), f"{place}the {name}")


@dataclasses.dataclass(frozen=True)
class SquadData:
    """Questions for training and testing.

    Attributes:
        name: Name in TFDS, or a path.
        train, test: Lists of `Question`.
    """

    name: str
    train: list
    test: list

    @property
    def unanswerable(self):
        """Whether some questions have no answer, as in SQuAD 2.0."""
        return any(not question.answers for question in (*self.train, *self.test))


def load_squad(name="squad", test=None, seed=0, data_dir=None):
    """Opens questions with their texts and answers.

    Args:
        name: One of

            - `"squad"` (1.1), `"squad/v2.0"` or `"xquad/en"`, prepared by TensorFlow Datasets. The
              validation split is the test split here. A set without a training split has an empty
              one.
            - a `.json` file in SQuAD's format, 1.1 or 2.0.
            - a folder with such files, whose names begin with `train` and `dev` or `test`.
        test: A file of test questions. Without one a fifth of the articles is held out, or of the
            texts if there is one article.
        seed: Seed of this split.
        data_dir: The folder of TFDS. Defaults to `$TFDS_DATA_DIR`.

    Returns:
        A `SquadData`.

    Raises:
        ValueError: If there is no such set or file, or a file has another format. One line.
    """
    path = Path(os.path.expanduser(name))
    if not str(name) or not path.exists():
        return _load_prepared(str(name), data_dir)
    train, held_out = find_parts(path)
    if train is None:
        found = ", ".join(file.name for file in list_suffix(path, (".json",)))
        raise ValueError(
            f"{path}: expected train*.json, and dev*.json or test*.json; found "
            f"{found or 'no JSON files'}."
        )
    questions, test = read_squad(train), test or held_out
    if test is not None:
        return SquadData(str(name), questions, read_squad(Path(os.path.expanduser(test))))
    return SquadData(str(name), *_divide(questions, seed, train))


def has_questions(name):
    """Returns whether `load_squad` opens a name, a file or a folder, rather than `load_text`."""
    path = Path(os.path.expanduser(name))
    if path.is_dir() or path.suffix.lower() == ".json":
        files = filter(None, find_parts(path))
        return any(not file.is_file() or _holds_object(file) for file in files)
    return name.partition("/")[0] in SETS


def require_questions(name):
    """Raises a `ValueError` if `load_squad` does not open a name."""
    if not has_questions(name):
        raise ValueError(
            f"{name!r}: has no questions to rank texts for; expected squad/v2.0 or another set, a "
            ".json file in SQuAD's format or a folder with such files."
        )


def _holds_object(path):
    with open(path, encoding="utf-8-sig", errors="replace") as file:
        while character := file.read(1):
            if not character.isspace():
                return character == "{"
    return False


def read_squad(path):
    """Reads a file in SQuAD's format."""
    questions = []
    try:
        with naming_errors(path):
            for article in parse_json(read_text(Path(path)), path)["data"]:
                for paragraph in article["paragraphs"]:
                    for entry in paragraph["qas"]:
                        questions.append(_read_question(entry, paragraph, article, len(questions)))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path}: not in SQuAD's format ({type(error).__name__}: {error}); expected data > "
            "paragraphs > context and qas > question, id, answers > text, answer_start."
        ) from None
    if not questions:
        raise ValueError(f"{path}: no questions.")
    return questions


def _read_question(entry, paragraph, article, number):
    name, context = str(entry.get("id", number)), paragraph["context"]
    impossible = entry.get("is_impossible")
    if impossible not in (None, True, False):
        raise ValueError(
            f"question {name!r}: is_impossible is {impossible!r}; expected true or false."
        )
    found = entry.get("answers") or []
    if impossible and found:
        raise ValueError(f"question {name!r}: is_impossible is true, but it has answers.")
    answers = tuple(_place(context, a["text"], a["answer_start"], name) for a in found)
    return Question(entry["question"], context, answers, name, article.get("title", ""))


def _place(context, text, start, name):
    """Returns an answer's place nearest to the one given, and its text."""
    whole = isinstance(start, numbers.Real) and not isinstance(start, bool) and start % 1 == 0
    if not whole or start < 0:
        raise ValueError(
            f"question {name!r}: answer_start is {start!r}; expected a whole number of 0 or more."
        )
    if not text:
        raise ValueError(f"question {name!r}: an answer is empty; expected text of its context.")
    start = int(start)
    if context.startswith(text, start):
        return start, text
    found = context.rfind(text, 0, start + len(text)), context.find(text, start)
    if max(found) < 0:
        raise ValueError(f"question {name!r}: the answer {text!r} is not in its context.")
    return min((n for n in found if n >= 0), key=lambda place: abs(place - start)), text


def find_parts(path):
    """Returns the paths of the training and the test questions in a file or a folder."""
    if not path.is_dir():
        return path, None
    found = group_splits(path, list_suffix(path, (".json",)), loose=True)
    held_out = (found[split] for split in SPLITS if split in found and split != "train")
    return found.get("train"), next(held_out, None)


def _divide(questions, seed, path):
    """Holds out a fifth of the articles, or of the texts if there is one article."""
    group = "title" if len({question.title for question in questions}) > 1 else "context"
    names = list(dict.fromkeys(getattr(question, group) for question in questions))
    if len(names) < 2:
        raise ValueError(f"{path}: one text only; expected two or more, or give a test file.")
    order = np.random.default_rng(seed).permutation(len(names))
    held_out = {names[place] for place in order[: max(1, round(SHARE * len(names)))]}
    return part_questions(questions, group, held_out)


def part_questions(questions, group, held_out):
    """Returns the questions whose title or context is not held out, and those whose is."""
    held = [getattr(question, group) in held_out for question in questions]
    return [[q for q, out in zip(questions, held, strict=True) if out == part] for part in (0, 1)]


def _has_all(prepared):
    return set(prepared.features) >= NEEDED


def _load_prepared(name, data_dir):
    kind = "JSON file, nor a folder, nor a set of questions"
    prepared = open_named(name, ".json", kind, _has_all, data_dir, {})
    if not prepared.readable or not _has_all(prepared):
        raise ValueError(
            f"{name!r}: expected the features {', '.join(sorted(NEEDED))}; the set has "
            f"{', '.join(prepared.features)}."
        )
    train, test = (
        [_from_sample(s) for n in names if n in prepared.splits for s in prepared.samples(n)]
        for names in (("train",), ("validation", "test"))
    )
    return SquadData(name, train, test)


def _from_sample(sample):
    context, question, name = (str(sample[n][0], "utf-8") for n in ("context", "question", "id"))
    texts = [str(text, "utf-8") for text in sample.get("answers/text", ())]
    starts = sample.get("answers/answer_start", ())
    answers = tuple(
        _place(context, text, start, name) for text, start in zip(texts, starts, strict=True)
    )
    return Question(question, context, answers, name, str(sample.get("title", [b""])[0], "utf-8"))
