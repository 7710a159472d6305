"""A task of a user's own, a regression on sentences, is one class that no module knows.

It trains, resumes, is evaluated, exported and checked, gets a model card, is opened and called.
"""

import dataclasses
import json

import keras
import numpy as np
import pytest
from small_text import LENGTH, small_tokenizer
from tiny_run import kill_after_an_epoch

import keras_gmlp
from keras_gmlp import text
from keras_gmlp.data.text.tokenizer import encode_rows
from keras_gmlp.evaluation.scoring import evaluate
from keras_gmlp.export.verify import export_run
from keras_gmlp.tasks.registry import SHIPPED, find_task
from keras_gmlp.tasks.text_task import TextTask
from keras_gmlp.training.recipes import Recipe
from keras_gmlp.training.train import train

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="exported on TensorFlow"
)


@dataclasses.dataclass(frozen=True)
class Praise(TextTask):
    """Predicts how much of a sentence is praise, a number."""

    length: int = LENGTH

    name = "praise"
    headline = "error"
    kind = "a model of praise"
    output = "the share of praise"

    def objective(self, model, data=None):
        return keras.losses.MeanSquaredError(), [keras.metrics.MeanAbsoluteError("error")]

    @classmethod
    def predict(cls, model, sentence):
        encoding = model.encode(sentence)
        return float(model.run(token_ids=np.array([encoding.ids]))[0, 0])

    @classmethod
    def load_samples(cls, models, source, split=None, limit=None):
        return json.loads(source.path.read_text()), {"split": "all"}

    @classmethod
    def score(cls, model, samples):
        found = np.array([cls.predict(model, sentence) for sentence in samples])
        errors = np.abs(found - np.array(list(samples.values())))
        return {"texts": len(found), "error": round(float(errors.mean()), 6)}, None


class Sentences:
    """Sentences of a gem and a bore, with the share of gems."""

    def __init__(self):
        self.name, self.tokenizer = "reviews", small_tokenizer()
        self.train, self.test = make_sentences(256, 0), make_sentences(16, 1)

    def encode(self, split, length):
        """Returns token ids and values of a split."""
        sentences = getattr(self, split)
        values = np.array([*sentences.values()], "float32")[:, None]
        return encode_rows(self.tokenizer, [*sentences], length), values


def make_sentences(samples, seed):
    draws = np.random.default_rng(seed).integers(0, 2, (samples, 8))
    return {" ".join("a gem" if gem else "a bore" for gem in row): row.mean() for row in draws}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The folder of a run that stopped after its first epoch and was resumed; its metrics."""
    folder, data = tmp_path_factory.mktemp("praise") / "run", Sentences()
    recipe = Recipe(epochs=8, batch_size=16, learning_rate=0.02, ema=0.0, task=Praise())
    kill_after_an_epoch(train, make_model(data), data, recipe, folder, verbose=0)
    metrics = train(make_model(data), data, recipe, folder, verbose=0)
    (folder / "reviews.json").write_text(json.dumps(data.test))
    return folder, metrics


def make_model(data):
    keras.utils.set_random_seed(0)
    sizes = {"dim": 8, "depth": 1, "hidden_dim": 16, "max_length": LENGTH}
    return text.text_classifier(text.gMLP(data.tokenizer.size, **sizes), 1)


def test_it_learns_resumes_and_has_a_model_card(run):
    folder, metrics = run
    assert metrics["epochs"] == 8
    assert metrics["test_error"] < 0.12  # of the mean value: 0.14
    assert len((folder / "history.csv").read_text().splitlines()) == 9
    assert json.loads((folder / "recipe.json").read_text())["task"] == "praise"
    card = (folder / "README.md").read_text()
    assert "A model of praise, trained with `keras_gmlp` on `reviews`" in card
    assert "| output | the share of praise |" in card
    assert f"| test error | {round(metrics['test_error'], 4)} |" in card


def test_it_is_opened_called_and_evaluated(run):
    folder, metrics = run
    model = keras_gmlp.load(folder)
    good, bad = model("a gem " * 8), model("a bore " * 8)
    assert good > bad
    with pytest.raises(ValueError, match="praise"):
        model.classify("a gem")
    report, _ = evaluate([model], folder / "reviews.json")
    assert report["models"][0]["error"] == pytest.approx(metrics["test_error"], abs=1e-4)


def test_its_export_is_checked(run):
    folder, _ = run
    samples = list(make_sentences(16, 1)), None
    found = export_run(folder, ["tflite_float32"], samples)["tflite_float32"]
    assert found["max_logit_difference"] < 1e-4
    small = keras_gmlp.load(folder / "model_float32.tflite")
    assert small.model is None
    assert small("a gem a bore") == pytest.approx(keras_gmlp.load(folder)("a gem a bore"), abs=1e-4)
    assert "model_float32.tflite" in (folder / "README.md").read_text()


def test_it_registers_itself():
    assert find_task("praise") is Praise
    assert "praise" not in SHIPPED
    with pytest.raises(ValueError, match="blame"):
        find_task("blame")
