"""Changes the precision of a model."""

import keras

from keras_gmlp.models.structure import require_floats
from keras_gmlp.objectives.losses import CrossEntropy
from keras_gmlp.objectives.metrics import Accuracy

DTYPES = ("dtype", "reverse_dtype")


def in_float32(model: keras.Model) -> keras.Model:
    """Copies a model with every layer in float32, compiled for evaluation.

    bfloat16 graphs do not convert to TFLite, and a saved model should load anywhere. The copy is
    compiled with plain SGD, which keeps no state: the state of Adam would triple the file. To train
    further, compile it with another optimizer.

    Args:
        model: A `keras.Model` from images to logits in any precision, frozen or not. Its sub-layers
            take their dtype policy from the layer that holds them.

    Returns:
        A new `keras.Model` with the same weights, all of them trainable.

    Raises:
        ValueError: If the model is quantized.

    Example:
        >>> import keras_gmlp
        >>> mixed = keras_gmlp.build("gmlp_n4_32", depth=1, dtype="mixed_bfloat16")
        >>> in_float32(mixed).get_layer("block_0").compute_dtype
        'float32'
    """
    require_floats(model)
    clone = keras.models.clone_model(model, clone_function=_clone_in_float32, recursive=True)
    for layer, copy in zip(model._flatten_layers(), clone._flatten_layers(), strict=True):
        variables = {}
        layer.save_own_variables(variables)  # adds LoRA's matrices to the kernels
        # Copies: JAX deletes arrays that it has trained or tested with.
        copy.load_own_variables({k: keras.ops.convert_to_numpy(v) for k, v in variables.items()})
    # Of the public class also on PyTorch, where SGD() would make another: the file names it.
    sgd = object.__new__(keras.optimizers.SGD)
    sgd.__init__()
    clone.compile(sgd, loss=CrossEntropy(), metrics=[Accuracy()])
    return clone


def _clone_in_float32(layer):
    config = layer.get_config()
    if isinstance(layer, keras.Layer):  # not an operation such as a slice
        config["trainable"] = True
        config |= {name: "float32" for name in DTYPES if _is_half(config.get(name))}
    return type(layer).from_config(config)


def _is_half(policy):
    name = policy["config"]["name"] if isinstance(policy, dict) else policy
    return name in ("mixed_bfloat16", "mixed_float16", "bfloat16", "float16")
