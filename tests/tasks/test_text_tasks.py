import dataclasses

import keras
import numpy as np
import pytest
from tiny_run import PIPELINES, kill_after_an_epoch

from keras_gmlp import text
from keras_gmlp.data.text.corpus import PreparedCorpus, build_corpus
from keras_gmlp.data.text.labelled_texts import TextData, TextSplit
from keras_gmlp.data.text.tokenizer import Tokenizer
from keras_gmlp.tasks.masked_lm import MaskedLM
from keras_gmlp.tasks.text_classification import TextClassification
from keras_gmlp.training.devices import use_devices
from keras_gmlp.training.recipes import Recipe
from keras_gmlp.training.train import train

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]
TASK = MaskedLM(length=16, epoch_tokens=16 * 96, validation_windows=8)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Documents that count through the words from a random one on."""
    folder = tmp_path_factory.mktemp("text")
    draw = np.random.default_rng(0)
    for name, count in (("train", 30), ("valid", 5)):
        starts = draw.integers(0, 10, count)
        documents = [" ".join(WORDS[(s + i) % 10] for i in range(40)) for s in starts]
        (folder / f"{name}.txt").write_text("\n\n".join(documents))
    tokenizer = Tokenizer.train([" ".join(WORDS)] * 3, 128)
    corpora = [build_corpus(folder / f"{n}.txt", tokenizer, folder, n) for n in ("train", "valid")]
    return PreparedCorpus(tokenizer, *corpora, name="count")


def tiny_model(tokenizer):
    keras.utils.set_random_seed(0)
    return text.gMLP(tokenizer.size, dim=32, depth=1, hidden_dim=64, max_length=16)


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_a_language_model_learns(prepared, tmp_path, pipeline):
    """On one device, and with the same weights on several."""
    task = dataclasses.replace(TASK, epoch_tokens=4 * TASK.epoch_tokens)
    recipe = Recipe(epochs=2, batch_size=8, learning_rate=0.01, pipeline=pipeline, task=task)
    weights = []
    for devices in (1, 4) if pipeline == "device" else (1,):
        folder = tmp_path / str(devices)
        with use_devices(devices):
            model = tiny_model(prepared.tokenizer)
            metrics = train(model, prepared, recipe, folder, verbose=0)
        assert metrics["test_perplexity"] < 8  # of ten words, if it ignored the others: 10
        assert metrics["test_perplexity"] == pytest.approx(np.exp(metrics["test_loss"]), rel=0.05)
        assert (folder / "tokenizer.json").exists()
        weights.append(model.get_weights())
    for one, several in zip(weights[0], weights[-1], strict=True):
        np.testing.assert_allclose(several, one, atol=1e-4)


@pytest.mark.once
def test_validation_takes_some_windows_and_the_test_all(prepared):
    windows = len(prepared.test.windows(16))
    assert windows > 8
    some, every = TASK.validation_batches(prepared), TASK.evaluation_batches(prepared)
    sizes = [sum(len(batches[i][1]) for i in range(len(batches))) for batches in (some, every)]
    assert sizes == [8, windows]
    (inputs, targets, _), (all_inputs, all_targets, _) = some[0], every[0]
    np.testing.assert_array_equal(targets, all_targets[:8])
    np.testing.assert_array_equal(inputs["token_ids"], all_inputs["token_ids"][:8])
    with pytest.raises(AttributeError):  # not the training text
        TASK.evaluation_batches(prepared, "validation")


class HalfPasses(TextClassification):
    """A task of a user's own, whose epoch is a half of the texts."""

    def samples_per_epoch(self, data):
        return len(data.train) // 2


@pytest.mark.once
def test_a_resumed_run_continues_with_the_next_batch(prepared, tmp_path):
    split = TextSplit(WORDS, np.arange(10) % 2)
    data = TextData("words", ("even", "odd"), split, split, tokenizer=prepared.tokenizer)
    model = text.text_classifier(tiny_model(prepared.tokenizer), 2)
    recipe = Recipe(epochs=2, batch_size=2, task=HalfPasses(length=16))
    initial, weights = model.get_weights(), []
    kill_after_an_epoch(train, model, data, recipe, tmp_path / "stopped", verbose=0)
    for folder in ("whole", "stopped"):
        model.set_weights(initial)
        train(model, data, recipe, tmp_path / folder, verbose=0)
        weights.append(model.get_weights())
    for whole, resumed in zip(*weights, strict=True):
        np.testing.assert_array_equal(resumed, whole)


@pytest.mark.once
def test_model_and_text_must_fit(prepared):
    other = text.gMLP(50, dim=16, depth=1, hidden_dim=32, max_length=16)
    with pytest.raises(ValueError, match="50 tokens"):
        TASK.check_fit(other, prepared)
    longer = dataclasses.replace(TASK, length=17)
    with pytest.raises(ValueError, match="length=17"):
        longer.check_fit(tiny_model(prepared.tokenizer), prepared)
