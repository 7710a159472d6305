"""Rewrites models for inference: the same numbers from fewer operations."""

import keras
from keras import layers, ops

from keras_gmlp.layers import Affine, GMLPBlock, ResMLPBlock, SpatialProjection
from keras_gmlp.layers.resmlp import FoldedResMLPBlock
from keras_gmlp.models.structure import require_floats


def fold(model: keras.Model) -> keras.Model:
    """Returns a ResMLP for inference, with the same logits but without Affine and LayerScale.

    Args:
        model: A built `keras.Model` with `ResMLPBlock`s, whose last `Affine` is followed by the
            mean over tokens and a head of one `Dense` layer, as `ResMLP(...)` builds it.

    Returns:
        A new `keras.Model`, not compiled. The given model does not change.

    Raises:
        ValueError: If the model is quantized, has no `ResMLPBlock`, has blocks with
            `norm_placement="post"`, or has no head to fold the last `Affine` into.

    Example:
        >>> fold(keras_gmlp.build("resmlp_n4_32")).output_shape
        (None, 10)
    """
    require_floats(model)
    last = [layer for layer in model.layers if isinstance(layer, Affine)]
    heads = [layer for layer in model.layers if isinstance(layer, layers.Dense)]
    blocks = [layer for layer in model.layers if isinstance(layer, ResMLPBlock)]
    # With "post" the residual joins before the Affine.
    before = all(block.norm_placement == "pre" for block in blocks)
    if not (blocks and before and len(last) == len(heads) == 1):
        raise ValueError(
            "fold takes a ResMLP with norm_placement='pre' and a head, into which the last Affine "
            f"folds; received {model.name}."
        )

    def clone(layer):
        if not isinstance(layer, ResMLPBlock):
            return type(layer).from_config(layer.get_config())
        return FoldedResMLPBlock(layer.hidden_dim, dtype=layer.dtype_policy, name=layer.name)

    def call(layer, *args, **kwargs):
        return args[0] if layer.name == last[0].name else layer(*args, **kwargs)

    folded = keras.models.clone_model(model, clone_function=clone, call_function=call)
    for layer in folded.layers:
        source = model.get_layer(layer.name)
        if isinstance(layer, FoldedResMLPBlock):
            _fold_block(source, layer)
        elif isinstance(layer, layers.Dense):
            layer.set_weights(_after_affine(source, last[0]))
        else:
            layer.set_weights(source.get_weights())
    return folded


def to_dense(model, length=None):
    """Returns a copy whose gates hold their matrices over tokens, so that no call computes them.

    With a `length`, a language model takes only this number of tokens, padding included.
    """
    if length is None and not any(map(_is_toeplitz, model.layers)):
        return model

    def clone(layer):
        config = layer.get_config()
        if _is_toeplitz(layer):
            config |= {"toeplitz": False, "grid": None}
        limit = config.get("max_tokens")
        if length is not None and limit is not None:
            if not 0 < length <= limit:
                raise ValueError(
                    f"{model.name} takes at most {limit} tokens; received length={length}. "
                    "keras_gmlp.text.adapt(model, max_length=...) raises the maximum."
                )
            # A gate without a maximum is a dense layer; positions have no other size.
            config["max_tokens"] = None if isinstance(layer, GMLPBlock) else length
        return type(layer).from_config(config)

    def fixed(tensor):
        shape = (length,) if tensor.name == "token_ids" else tensor.shape[1:]
        return keras.Input(shape, dtype=tensor.dtype, name=tensor.name)

    inputs = None if length is None else keras.tree.map_structure(fixed, model.input)
    dense = keras.models.clone_model(model, inputs, clone_function=clone)
    for layer in dense.layers:
        _assign_dense(model.get_layer(layer.name), layer, length)
    return dense


def _is_toeplitz(layer):
    return isinstance(layer, GMLPBlock) and layer.gate is not None and layer.toeplitz


def _assign_dense(source, layer, length):
    """Assigns the weights of a layer to its copy with matrices over the first tokens."""
    values = {weight.path: ops.convert_to_numpy(weight) for weight in source.weights}
    projection = getattr(getattr(source, "gate", None), "spatial", None)
    if isinstance(projection, SpatialProjection):
        kernel = projection.bias.path.removesuffix("bias") + "kernel"
        values[kernel] = ops.convert_to_numpy(projection.matrices())
    for weight in layer.weights:
        value = values[weight.path]
        if value.ndim > len(weight.shape):  # one head: a dense layer
            (value,) = value
        # Shorter only along tokens, of which a text takes the first.
        weight.assign(value[tuple(map(slice, weight.shape))])


def _fold_block(block, folded):
    """Assigns the weights of a block to its folded form."""
    (alpha, beta), (gamma,) = _arrays(block.norm1), _arrays(block.scale1)
    kernel, bias = _arrays(block.spatial)
    folded.spatial.kernel.assign(kernel)
    folded.scale.assign(gamma * alpha)
    # W (alpha x + beta) + b: the part of beta is the same for every image.
    folded.shift.assign(gamma * (kernel.sum(axis=0)[:, None] * beta + bias[:, None]))
    folded.expand.set_weights(_after_affine(block.expand, block.norm2))
    (gamma,), (kernel, bias) = _arrays(block.scale2), _arrays(block.shrink)
    folded.shrink.set_weights([kernel * gamma, bias * gamma])


def _after_affine(dense, affine):
    """Returns kernel and bias of a dense layer with the Affine before it folded in."""
    (kernel, bias), (alpha, beta) = _arrays(dense), _arrays(affine)
    return alpha[:, None] * kernel, bias + beta @ kernel


def _arrays(layer):
    """Returns the weights in float64, so that folding adds no rounding error."""
    return [array.astype("float64") for array in layer.get_weights()]
