"""Questions: prepared sets and files in SQuAD's format."""

import json
import os

import pytest
from refused import refused
from tfrecord_files import example, write_prepared

from keras_gmlp.data.text import Question, load_squad
from keras_gmlp.data.text.squad import read_squad
from keras_gmlp.data.text.squad_answers import Prediction, Span, best_threshold, squad_scores

TEXT = "The caf\u00e9 of Paris is near the river. The river is the Seine."


def fails(match, name, **options):
    """Checks that `load_squad` raises a `ValueError` of one line, and returns it."""
    with refused(match) as error:
        load_squad(str(name), **options)
    return str(error.value)


def entry(answers, question="Where?", **members):
    found = [{"text": text, "answer_start": start} for start, text in answers]
    return {"question": question, "answers": found, **members}


def write_json(path, *articles):
    """Writes a file of articles, each a list of (text, entries)."""
    data = [
        {
            "title": f"article {n}",
            "paragraphs": [{"context": text, "qas": entries} for text, entries in article],
        }
        for n, article in enumerate(articles)
    ]
    path.write_text(json.dumps({"version": "v2.0", "data": data}), encoding="utf-8")
    return str(path)


def prepare(root, splits, place="squad/v1.1/3.0.0"):
    """Writes questions as TensorFlow Datasets prepares them."""
    features = {name: {} for name in ("answers", "context", "id", "question", "title")}
    records = {split: [*map(record, questions)] for split, questions in splits.items()}
    folder = write_prepared(root / place, features, records)
    (folder.parent.parent / ".config").mkdir()
    usual = {"default_config_name": folder.parent.name}
    (folder.parent.parent / ".config/metadata.json").write_text(json.dumps(usual))


def record(question):
    """Returns a `tf.train.Example`; the answers are a sequence of structures."""
    texts = {n: getattr(question, n).encode() for n in ("context", "id", "question", "title")}
    answers = {
        "answers/answer_start": [start for start, _ in question.answers],
        "answers/text": [text.encode() for _, text in question.answers],
    }
    return example(**texts, **answers)


def test_prepared_questions(tmp_path):
    train = [Question("Where?", TEXT, ((12, "Paris"),), "a", "Caf\u00e9s")]
    test = [
        Question("What river?", TEXT, ((54, "Seine"), (50, "the Seine")), "b"),
        Question("Who?", TEXT, (), "c"),
    ]
    prepare(tmp_path, {"train": train, "validation": test})
    data = load_squad("squad", data_dir=tmp_path)
    assert (data.name, data.train, data.test) == ("squad", train, test)
    assert data.unanswerable
    assert "Did you mean 'squad/v1.1'?" in fails("neither", "squad/v1.0", data_dir=tmp_path)


def test_other_prepared_sets(tmp_path):
    folder = tmp_path / "images/1.0.0"
    folder.mkdir(parents=True)
    (folder / "dataset_info.json").write_text('{"name": "images"}')
    fails("expected the features answers, context.* the set has ", "images", data_dir=tmp_path)


def test_file_in_the_format_of_squad(tmp_path):
    path = write_json(
        tmp_path / "train.json",
        [(TEXT, [entry([(12, "Paris")], id="x"), entry([], id="y", is_impossible=True)])],
        [("Another text.", [entry([(0, "Another")])])],
    )
    first, second, third = read_squad(path)
    assert first == Question("Where?", TEXT, ((12, "Paris"),), "x", "article 0")
    assert second.answers == ()
    assert third.id == "2"
    data = load_squad(path)
    assert [len(data.train), len(data.test)] in ([2, 1], [1, 2])  # whole articles
    assert load_squad(path, test=path).test == [first, second, third]


def test_answer_beside_its_place_is_moved(tmp_path):
    path = write_json(tmp_path / "a.json", [(TEXT, [entry([(38, "river")])])])
    (question,) = read_squad(path)
    assert TEXT.index("river") == 30
    assert question.answers == ((41, "river"),)  # the second one is nearer


def test_one_article_is_divided_by_its_texts(tmp_path):
    texts = [(f"Text {n} is here.", [entry([(0, "Text")])] * 2) for n in range(10)]
    data = load_squad(write_json(tmp_path / "a.json", texts))
    assert [len(data.train), len(data.test)] == [16, 4]
    assert not {q.context for q in data.train} & {q.context for q in data.test}


def test_bad_files(tmp_path):
    path = tmp_path / "a.json"
    for articles, match in [
        ([[(" ", [entry([], id="x")])]], "question 'x': the context is empty"),
        ([[(TEXT, [entry([], "", id="x")])]], "question 'x': the question is empty"),
        ([[(TEXT, [entry([(0, "London")], id="x")])]], "answer 'London' is not in its context"),
        ([[(TEXT, [{"id": "x"}])]], r"not in SQuAD's format \(KeyError: 'question'\)"),
        ([], "no questions"),
        ([[(TEXT, [entry([(12, "Paris")])])]], "one text only"),
    ]:
        write_json(path, *articles)
        assert fails(match, path).startswith(f"{path}: ")
    for content, match in [
        ("[1]", "not in SQuAD's format"),
        ("{", "not JSON"),
        ('{"data": [{"paragraphs": 3}]}', "not in SQuAD's format"),
    ]:
        path.write_text(content)
        fails(match, path)
    path.write_bytes(b'{"data": "\xe9"}')
    fails("not UTF-8 in line 1", path)


@pytest.mark.parametrize(
    ("answer", "more", "reason"),
    [
        ((-4, "Paris"), {}, "answer_start is -4; expected a whole number of 0 or more"),
        (("12", "Paris"), {}, "answer_start is '12'; expected"),
        ((12.5, "Paris"), {}, "answer_start is 12.5; expected"),
        ((True, "Paris"), {}, "answer_start is True; expected"),
        ((0, ""), {}, "an answer is empty"),
        ((12, "Paris"), {"is_impossible": "false"}, "is_impossible is 'false'; expected true or"),
        ((12, "Paris"), {"is_impossible": True}, "is_impossible is true, but it has answers"),
    ],
)
def test_odd_answers_are_refused_by_name(tmp_path, answer, more, reason):
    path = write_json(tmp_path / "a.json", [(TEXT, [entry([answer], id="x", **more)])])
    assert fails(reason, path).startswith(f"{path}: question 'x': ")


def test_folder_of_files(tmp_path):
    write_json(tmp_path / "SQuAD_Train-v2.JSON", [(TEXT, [entry([(12.0, "Paris")], id="a")])])
    write_json(tmp_path / "dev.json", [(TEXT, [entry([(12, "Paris")], id="b", is_impossible=0)])])
    data = load_squad(tmp_path)
    assert ([q.id for q in data.train], [q.id for q in data.test]) == (["a"], ["b"])
    assert [q.answers for q in (*data.train, *data.test)] == [((12, "Paris"),)] * 2
    write_json(tmp_path / "train-v1.json", [])
    fails("SQuAD_Train-v2.JSON and train-v1.json both mean train", tmp_path)
    (tmp_path / "train-v1.json").unlink()
    (tmp_path / "SQuAD_Train-v2.JSON").unlink()
    fails(r"expected train\*\.json, .*found dev\.json", tmp_path)


def test_missing_files_name_the_nearest(tmp_path):
    write_json(tmp_path / "questions.json", [])
    fails(r"no such file or folder\. Did you mean questions\.json\?", tmp_path / "question.json")
    fails("'nothing' is neither a JSON file", "nothing", data_dir=tmp_path)


def test_real_squad_2():
    if not os.path.isdir(os.path.join(os.environ.get("TFDS_DATA_DIR", "/none"), "squad/v2.0")):
        pytest.skip("squad/v2.0 is not in $TFDS_DATA_DIR")
    data = load_squad("squad/v2.0")
    assert (len(data.train), len(data.test)) == (0, 11_873)
    assert sum(not question.answers for question in data.test) == 5_945
    nothing = squad_scores(data.test, [""] * len(data.test))
    assert nothing["f1"] == nothing["exact_match"] == pytest.approx(100 * 5_945 / 11_873)
    # A model that finds each answer, and "nothing" where there is none, with a higher null score.
    some = data.test[:1000]
    found = [
        Prediction((Span(0.0, 0, 3, q.answers[0][1] if q.answers else "nothing"),), difference)
        for q, difference in ((q, -1.0 if q.answers else 1.0) for q in some)
    ]
    always = squad_scores(some, [prediction.answer() for prediction in found])
    assert (always["answerable_f1"], always["unanswerable_f1"]) == (100, 0)
    threshold = best_threshold(some, found)
    scores = squad_scores(some, [prediction.answer(threshold) for prediction in found])
    assert scores["f1"] == scores["exact_match"] == 100
