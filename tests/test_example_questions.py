"""The example of questions: a task of a stranger's trains, scores, exports and answers."""

import importlib.util
import json
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
from small_text import LINES

import keras_gmlp
from keras_gmlp import text
from keras_gmlp.utils.card import write_text_card

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="exported on TensorFlow"
)
PATH = Path(__file__).parents[1] / "examples/questions/questions.py"
LENGTH = 48
NAMES = ["Zarathustra", "Bartholomew", "Clementine", "Wilhelmina"]


@pytest.fixture(scope="module")
def questions():
    spec = importlib.util.spec_from_file_location("questions", PATH)
    module = sys.modules["questions"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_file(path, samples, seed):
    """Writes questions whose answer is the only name among words that repeat."""
    generator, paragraphs = np.random.default_rng(seed), []
    for _ in range(samples):
        words = generator.choice(["the", "river", "house", "old"], 30).tolist()
        place, name = generator.integers(30), str(generator.choice(NAMES))
        words[place] = name
        start = len(" ".join([*words[:place], ""]))
        entry = {
            "question": "Who lives in Rome?",
            "answers": [{"text": name, "answer_start": start}],
        }
        paragraphs.append({"context": " ".join(words), "qas": [entry]})
    path.write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}))
    return str(path)


@pytest.fixture(scope="module")
def run(questions, tmp_path_factory):
    """The folder of a run, and its metrics."""
    folder = tmp_path_factory.mktemp("questions")
    tokenizer = text.Tokenizer.train(LINES, vocabulary_size=200)
    sizes = {"dim": 16, "depth": 1, "hidden_dim": 32, "attention_size": 8, "max_length": LENGTH}
    model = text.aMLP(tokenizer.size, separator=tokenizer.sep_id, **sizes)
    model.save(folder / "model.keras")
    write_text_card(folder / "model.keras", "masked_lm", tokenizer)
    command = ["train", "--data", make_file(folder / "train.json", 256, 0), "--test"]
    command += [make_file(folder / "test.json", 16, 1), "--weights", folder / "model.keras"]
    command += ["--out", folder / "run", "--length", LENGTH, "--epochs", 2, "--batch-size", 16]
    command += ["--learning-rate", 0.02, "--precision", "float32", "--export"]
    questions.main([str(word) for word in command])
    return folder / "run", json.loads((folder / "run/metrics.json").read_text())


def test_it_learns_scores_and_answers_with_whole_words(questions, run, capsys):
    folder, metrics = run
    assert metrics["test_exact_match"] > 80
    assert metrics["test_f1"] >= metrics["test_exact_match"]
    assert "| test f1 |" in (folder / "README.md").read_text()
    questions.main(["evaluate", str(folder), "--data", str(folder.with_name("test.json"))])
    scores = json.loads(capsys.readouterr().out)
    assert scores["f1"] == pytest.approx(metrics["test_f1"], abs=0.01)
    context = "the old river " * 30 + "Wilhelmina the house " + "the river " * 30
    folder.with_name("context.txt").write_text(context)
    context_file = ["--context", str(folder.with_name("context.txt"))]
    questions.main(["answer", str(folder), "Who lives in Rome?", *context_file])
    assert capsys.readouterr().out.startswith("Who lives in Rome? Wilhelmina (")
    with pytest.raises(SystemExit, match=r"nowhere\.json"):
        questions.main(["evaluate", str(folder), "--data", "nowhere.json"])


def test_its_export_answers_the_same(run):
    folder, metrics = run
    assert metrics["exports"]["tflite_float32"]["max_logit_difference"] < 1e-3
    asked = "Who lives in Rome?", "the old Clementine the river"
    whole = keras_gmlp.load(folder / "model.keras")
    small = keras_gmlp.load(folder / "model_float32.tflite")
    assert small.model is None
    assert small(*asked) == whole(*asked) | {
        "score": pytest.approx(whole(*asked)["score"], abs=1e-3)
    }


def test_scores_are_those_of_squad(questions):
    asked = [
        questions.Question("?", "", ((0, "The Cat!"), (0, "two cats"))),
        questions.Question("?", ""),
    ]
    assert questions.score_answer(asked[0], "a cat") == (True, 1.0)
    assert questions.score_answer(asked[0], "cats") == (False, pytest.approx(2 / 3))
    assert questions.score_answer(asked[1], "") == (True, 1.0)
    assert questions.score_answer(asked[1], "cat") == (False, 0.0)
