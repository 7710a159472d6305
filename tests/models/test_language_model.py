import keras
import numpy as np
import pytest
from check_layer import redraw_weights, to_numpy
from small_text import LANGUAGE_MODELS

from keras_gmlp.models.language_families import BERT, aMLP, gMLP
from keras_gmlp.models.language_model import adapt, encoder, text_classifier
from keras_gmlp.models.precision import in_float32
from keras_gmlp.models.presets import TEXT_PRESETS

# Millions of parameters in the paper's tables 6 and 7, which print 130, 109, 365, 316 and 941. The
# other digit is what its sizes give on paper: 32,000 words, 512 tokens, Toeplitz matrices.
PAPER = {
    "gmlp_base": 130.1,
    "amlp_base": 108.8,
    "gmlp_large": 365.3,
    "amlp_large": 315.6,
    "gmlp_xlarge": 940.6,
}
WORDS, FAMILY = {"vocabulary_size": 32000}, {"g": gMLP, "a": aMLP}
# Table 3 prints 92, 92, 92 and 102, at 128 tokens; the counts only fit if the gates that do not
# split have 2,048 channels.
UNSPLIT = {"dim": 512, "hidden_dim": 2048, **WORDS}
# The smallest and the largest of table 4, which prints 59 and 357 for gMLP, 67 and 365 for
# Transformers, and 96 for the one without attention.
ROWS = [
    *((FAMILY[name[0]], TEXT_PRESETS[name][1], count) for name, count in PAPER.items()),
    *((gMLP, {"depth": 36, "gating": g, **UNSPLIT}, 92.2) for g in ("linear", "additive")),
    (gMLP, {"depth": 36, "gating": "multiplicative", **UNSPLIT}, 92.2),
    (gMLP, {"depth": 18, **WORDS}, 59.0),
    (gMLP, {"depth": 144, **WORDS}, 357.3),
    (BERT, {"depth": 6, **WORDS}, 67.1),
    (BERT, {"depth": 48, **WORDS}, 364.8),
    (BERT, {"depth": 12, "content": False, **WORDS}, 95.5),
]
# The blocks of the others are tested on every backend.
every_family = pytest.mark.parametrize(
    "family",
    [
        pytest.param(family, marks=[pytest.mark.once] * (family != "relative"))
        for family in LANGUAGE_MODELS
    ],
)


def redraw(model, stddev=0.3):
    redraw_weights(model, stddev)
    return model


def texts(lengths=(4, 7, 10), width=10):
    generator = np.random.default_rng(0)
    ids = generator.integers(5, 40, (len(lengths), width)).astype("int32")
    ids[:, 0] = 2
    ids[np.arange(len(lengths)), np.array(lengths) - 1] = 3
    return np.where(np.arange(width) < np.array(lengths)[:, None], ids, 0).astype("int32")


@pytest.mark.once
def test_bert_starts_as_published():
    keras.utils.set_random_seed(0)
    model = BERT(300, 64, 1, 2, relative=False, segments=2, max_length=100)
    # A normal distribution of standard deviation 0.02 that is cut off at two of them has 0.0176.
    for weight in model.weights:
        value = to_numpy(weight)
        if weight.name in ("kernel", "embedding", "embeddings"):
            assert np.std(value) == pytest.approx(0.0176, rel=0.15), weight.path
        else:
            assert np.all(value == (weight.name == "gamma")), weight.path


def parameters(function, depth, **arguments):
    """Counts the parameters of a deep model, without the head, from those of a shallow one.

    The paper's counts exclude the head's dense layer, norm and bias.
    """
    model = function(**arguments, depth=1)
    counts = {layer.name: layer.count_params() for layer in model.layers}
    block = counts.pop("block_0")
    rest = sum(count for name, count in counts.items() if not name.startswith("head_"))
    return rest + depth * block


@pytest.mark.once
@pytest.mark.usefixtures("start_at_zero")
@pytest.mark.parametrize(("function", "arguments", "millions"), ROWS)
def test_parameters_of_the_paper(function, arguments, millions):
    assert round(parameters(function, **arguments) / 1e6, 1) == millions


@every_family
def test_padded_texts_equal_short_ones(family):
    model = redraw(LANGUAGE_MODELS[family]())
    ids, places = texts(), np.array([[1, 2], [3, 5], [8, 1]])
    padded = np.pad(ids, ((0, 0), (0, 2)))
    logits = to_numpy(model({"token_ids": padded, "mask_positions": places}))
    assert logits.shape == (3, 2, 40)
    for i, length in ((0, 4), (2, 10)):
        short = {"token_ids": ids[i : i + 1, :length], "mask_positions": places[i : i + 1]}
        np.testing.assert_allclose(logits[i], to_numpy(model(short))[0], rtol=1e-5, atol=1e-5)


@pytest.mark.once
@pytest.mark.parametrize("family", LANGUAGE_MODELS)
def test_a_longer_maximum_leaves_short_texts_unchanged(family):
    model = redraw(LANGUAGE_MODELS[family]())
    longer = adapt(model, max_length=20, dropout=0.1)
    inputs = {"token_ids": texts(), "mask_positions": np.array([[1, 2], [3, 5], [8, 1]])}
    np.testing.assert_array_equal(to_numpy(longer(inputs)), to_numpy(model(inputs)))
    ids = np.full((1, 20), 7)
    logits = to_numpy(longer({"token_ids": ids, "mask_positions": np.array([[19]])}))
    assert np.isfinite(logits).all()
    assert longer.get_layer("block_0").dropout == 0.1


@pytest.mark.once
def test_words_are_looked_up_in_float32_and_compared_in_the_precision_of_the_model():
    sizes = {"vocabulary_size": 20, "max_length": 8, "dim": 8, "depth": 1, "hidden_dim": 16}
    plain, mixed = gMLP(**sizes), gMLP(**sizes, dtype="mixed_bfloat16")
    models = [
        (mixed, "bfloat16"),
        (adapt(plain, dtype="mixed_bfloat16"), "bfloat16"),
        (adapt(mixed, dtype="float32"), None),
        (in_float32(mixed), "float32"),
        (plain, None),
    ]
    for model, reverse in models:
        embedding = model.get_layer("token_embedding")
        assert (embedding.compute_dtype, embedding.reverse_dtype) == ("float32", reverse)
    assert gMLP(**sizes, dtype="float16").get_layer("token_embedding").compute_dtype == "float16"
    for model in (mixed, text_classifier(mixed, 2)):
        again = adapt(model, dtype="mixed_bfloat16")
        assert again.get_layer("block_0").compute_dtype == "bfloat16"
        assert again.outputs[0].dtype == "float32"
    assert again.get_layer("head_pooler").compute_dtype == "bfloat16"


@pytest.mark.once
def test_new_offsets_start_at_zero_and_biases_at_the_last_one():
    model = redraw(LANGUAGE_MODELS["gmlp"]())
    old = model.get_layer("block_0").gate.spatial
    new = adapt(model, max_length=14).get_layer("block_0").gate.spatial
    offsets, bias = to_numpy(old.offsets), to_numpy(old.bias)
    np.testing.assert_array_equal(to_numpy(new.offsets), np.pad(offsets, ((0, 0), (2, 2))))
    np.testing.assert_array_equal(to_numpy(new.bias)[0, 12:], bias[0, [-1, -1]])


@every_family
def test_models_learn_save_and_load(family, tmp_path):
    model = LANGUAGE_MODELS[family](dropout=0.1)
    inputs = {"token_ids": texts(), "mask_positions": np.array([[1, 2], [3, 5], [8, 0]])}
    targets, weights = np.full((3, 2), 6), np.array([[1, 1], [1, 1], [1, 0]], "float32")
    before = {w.path: to_numpy(w) for w in model.trainable_weights}
    model.optimizer.learning_rate = 0.01  # far beyond the noise of dropout
    history = model.fit(inputs, targets, sample_weight=weights, epochs=6, verbose=0).history
    assert set(history) == {"loss", "perplexity", "accuracy"}
    assert history["loss"][-1] < history["loss"][0]
    same = {w.path for w in model.trainable_weights if np.array_equal(w, before[w.path])}
    assert {path for path in same if not path.endswith("key/bias")} == set()
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(to_numpy(loaded(inputs)), to_numpy(model(inputs)))


@pytest.mark.once  # which weights are shared, and their numbers
def test_heads_share_the_encoder():
    model, ids = LANGUAGE_MODELS["original"](), texts()
    classifier = text_classifier(model, 3)
    assert to_numpy(classifier(ids)).shape == (3, 3)
    assert classifier.get_layer("block_1") is model.get_layer("block_1")
    assert encoder(classifier)[1] is encoder(model)[1]
    classifier.fit(ids, np.array([0, 1, 2]), verbose=0)


@pytest.mark.once
def test_perplexity_counts_tokens_and_not_batches():
    model = redraw(LANGUAGE_MODELS["gmlp"](), 0.5)
    places = np.array([[1, 2, 3], [1, 0, 0], [4, 5, 0], [6, 7, 8]])
    weights = np.array([[1, 1, 1], [1, 0, 0], [1, 1, 0], [1, 1, 1]], "float32")
    ids = texts((9, 9, 9, 9))
    targets = np.random.default_rng(0).integers(5, 40, places.shape)
    inputs = {"token_ids": ids, "mask_positions": places}
    logits = to_numpy(model(inputs)).astype("float64")
    logits -= np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    nll = -np.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
    expected = np.exp((nll * weights).sum() / weights.sum())
    by_batches = np.exp([(nll * weights)[i].sum() / weights[i].sum() for i in range(4)]).mean()
    assert abs(by_batches / expected - 1) > 0.01
    arguments = {"sample_weight": weights, "verbose": 0, "return_dict": True}
    values = model.evaluate(inputs, targets, batch_size=3, **arguments)
    assert values["perplexity"] == pytest.approx(expected, rel=1e-5)
