import keras
import numpy as np
import pytest
from check_layer import to_numpy

from keras_gmlp import ResNet, ViT, gMLP
from keras_gmlp.models.language_families import BERT
from keras_gmlp.objectives.optimizers import MatrixMuon, make_optimizer, matrix_rows
from keras_gmlp.training.recipes import Recipe

TINY = {"dim": 8, "depth": 1, "input_shape": (8, 8, 3), "patch_size": 4, "classes": 3}


def step(optimizer, kernels, gradients):
    """The kernels after two steps; the second knows the first's momentum."""
    variables = [keras.Variable(kernel, name="kernel") for kernel in kernels]
    for _ in range(2):
        optimizer.apply(
            [keras.ops.convert_to_tensor(gradient) for gradient in gradients], variables
        )
    return [to_numpy(variable) for variable in variables]


def draw(*shape):
    return np.random.normal(size=shape).astype("float32")


def test_matrices_take_the_steps_of_keras_own():
    kernel, gradient = draw(6, 4), draw(6, 4)
    settings = {"learning_rate": 0.1, "weight_decay": 0.1}
    (expected,) = step(keras.optimizers.Muon(**settings), [kernel], [gradient])
    (found,) = step(MatrixMuon(**settings), [kernel], [gradient])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("devices", [[], ["a GPU"]])
def test_matrices_of_one_shape_take_the_steps_that_each_takes_alone(devices, monkeypatch):
    shapes = [(6, 4), (4, 6), (6, 4), (1, 2, 3, 4), (5, 5)]
    kernels, gradients = [draw(*s) for s in shapes], [draw(*s) for s in shapes]
    monkeypatch.setattr("keras_gmlp.objectives.optimizers.accelerators", lambda: devices)
    stacks = []
    own = MatrixMuon.zeropower_via_newtonschulz5

    def count(self, x, steps):
        stacks.append(len(x))
        return own(self, x, steps)

    monkeypatch.setattr(MatrixMuon, "zeropower_via_newtonschulz5", count)
    together = step(MatrixMuon(0.1), kernels, gradients)
    if devices and keras.backend.backend() != "tensorflow":
        assert stacks == [3, 1, 1] * 2
    else:
        assert stacks == [1] * 10
    for kernel, gradient, found in zip(kernels, gradients, together, strict=True):
        (alone,) = step(MatrixMuon(0.1), [kernel], [gradient])
        np.testing.assert_allclose(found, alone, rtol=1e-5, atol=1e-6)


def test_convolution_is_a_matrix_of_its_outputs():
    kernel, gradient = draw(3, 3, 2, 4), draw(3, 3, 2, 4)
    (expected,) = step(MatrixMuon(0.1), [kernel.reshape(18, 4)], [gradient.reshape(18, 4)])
    (found,) = step(MatrixMuon(0.1), [kernel], [gradient])
    np.testing.assert_allclose(found.reshape(18, 4), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.once
def test_rows_of_attention_s_kernels():
    attention = ViT(num_heads=2, **TINY).get_layer("block_0").attention
    rows = {w.path.split("/")[-2]: matrix_rows(w) for w in attention.weights if w.name == "kernel"}
    assert rows == {"query": 8, "key": 8, "value": 8, "attention_output": 8}
    wide = keras.layers.MultiHeadAttention(2, 3, name="wide")
    wide.build((1, 5, 8), (1, 5, 8))
    rows = {w.path.split("/")[-2]: matrix_rows(w) for w in wide.weights if w.name == "kernel"}
    assert rows == {"query": 8, "key": 8, "value": 8, "attention_output": 6}


@pytest.mark.once  # which kernels, by their names
@pytest.mark.parametrize(
    "model",
    [
        lambda: gMLP(hidden_dim=12, **TINY),
        lambda: gMLP(hidden_dim=12, stem="residual", stem_arguments={"depth": 1}, **TINY),
        lambda: ViT(num_heads=2, distillation_token=True, **TINY),
        lambda: ResNet(8, 4, input_shape=(8, 8, 3), classes=3),
    ],
)
def test_recipe_gives_muon_every_kernel_but_the_first_and_the_last(model):
    model = model()
    optimizer = make_optimizer(Recipe(optimizer="muon"), 10)
    by_muon = {v.path for v in model.trainable_variables if not optimizer._should_use_adamw(v)}
    kernels = {v.path for v in model.trainable_variables if v.name == "kernel"}
    ends = {path for path in kernels if path.startswith(("stem", "head"))}
    ends -= {f"stem/{name}/kernel" for name in ("residual_0_1", "halve_1")}
    assert len(ends) in (2, 3)
    assert by_muon == kernels - ends
    optimizer.build(model.trainable_variables)
    gradients = [keras.ops.ones(v.shape) for v in model.trainable_variables]
    optimizer.apply(gradients, model.trainable_variables)
    assert all(np.isfinite(to_numpy(v)).all() for v in model.trainable_variables)


@pytest.mark.once
@pytest.mark.parametrize("optimizer", ["muon", "adamw"])
def test_tables_of_language_models(optimizer):
    model = BERT(40, dim=8, depth=1, num_heads=2, max_length=8, segments=2, positions=True)
    made = make_optimizer(Recipe(optimizer=optimizer), 10)
    made.build(model.trainable_variables)
    kernels = {v.path for v in model.trainable_variables if v.name == "kernel"}
    decayed = {v.path for v in model.trainable_variables if made._use_weight_decay(v)}
    assert decayed == kernels | {"token_embedding/embeddings"}
    if optimizer == "muon":
        by_muon = {v.path for v in model.trainable_variables if not made._should_use_adamw(v)}
        assert by_muon == kernels - {"head_transform/dense/kernel"}
