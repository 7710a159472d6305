"""What one image costs: floating-point operations, counted by a compiler and not by a formula.

JAX's XLA counts those of the model's graph for a batch of one: multiplications and additions each,
so that a dense layer costs twice its weights; norms, activations and pooling count too.
"""

import os
import subprocess
import sys

import keras


def flops(preset, **overrides):
    """Floating-point operations of one image through a preset's model.

    Args:
        preset: a key of `PRESETS`.
        **overrides: see `presets.build`.

    Returns:
        Their number, or `None` where JAX is not installed.

    Raises:
        ValueError: an unknown preset or an override out of its range.
    """
    from keras_gmlp.presets import build, lookup

    lookup(preset)
    if keras.backend.backend() == "jax":
        return _count(build(preset, **overrides))
    # Keras has one backend a process.
    arguments = [preset, *(f"{name}={value!r}" for name, value in overrides.items())]
    result = subprocess.run(
        [sys.executable, "-m", "keras_gmlp.complexity", *arguments],
        env={**os.environ, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    if "No module named 'jax'" in result.stderr:
        return None
    if result.returncode:
        raise ValueError(result.stderr.strip().splitlines()[-1])
    return int(result.stdout)


def _count(model):
    import jax

    image = jax.ShapeDtypeStruct((1, *model.input_shape[1:]), "float32")
    graph = jax.jit(lambda x: model(x, training=False)).lower(image)
    return round(graph.cost_analysis()["flops"])


def _main(preset, *settings):
    import ast

    pairs = (setting.split("=", 1) for setting in settings)
    print(flops(preset, **{name: ast.literal_eval(value) for name, value in pairs}))


if __name__ == "__main__":
    _main(*sys.argv[1:])
