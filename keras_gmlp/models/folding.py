"""Rewrites models for inference: the same numbers from fewer operations."""

import keras
from keras import layers, ops

from keras_gmlp.layers import Affine, FoldedResMLPBlock, GMLPBlock, ResMLPBlock


def fold(model):
    """Returns a ResMLP for inference, with the same logits but without Affine and LayerScale.

    Args:
        model: A built `keras.Model` with `ResMLPBlock`s, whose last `Affine` is followed by the
            mean over tokens and a head of one `Dense` layer, as `ResMLP(...)` builds it.

    Returns:
        A new `keras.Model`, not compiled. The given model does not change.

    Raises:
        ValueError: If the model has no `ResMLPBlock`, has blocks with `norm_placement="post"`, or
            has no head to fold the last `Affine` into.

    Example:
        >>> fold(keras_gmlp.build("resmlp_n4_32")).output_shape
        (None, 10)
    """
    names = [layer.name for layer in model.layers]
    last = [layer for layer in model.layers if isinstance(layer, Affine)]
    heads = [layer for layer in model.layers if isinstance(layer, layers.Dense)]
    blocks = [layer for layer in model.layers if isinstance(layer, ResMLPBlock)]
    if not blocks:
        raise ValueError(f"fold takes a ResMLP; {model.name} has no ResMLPBlock.")
    if any(block.norm_placement != "pre" for block in blocks):
        raise ValueError(
            f"fold takes blocks with norm_placement='pre'; {model.name} has 'post', where the "
            "residual joins before the Affine."
        )
    if len(last) != 1 or len(heads) != 1:
        raise ValueError(
            f"fold requires a head to fold the last Affine into; {model.name} has the layers "
            f"{names}. Build it with include_top=True."
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
            _assign(layer, *_after_affine(source, last[0]))
        else:
            layer.set_weights(source.get_weights())
    return folded


def to_dense(model):
    """Returns a copy whose gates hold their matrices over tokens, so that no call computes them.

    A gate with `toeplitz=True` computes its matrices from the weights of offsets. Exports, pictures
    and quantization use the copy.

    Args:
        model: A built `keras.Model`.

    Returns:
        A new `keras.Model`, not compiled, or the model itself if no gate is shift-invariant.
    """
    if not any(map(_is_toeplitz, model.layers)):
        return model

    def clone(layer):
        config = layer.get_config()
        if _is_toeplitz(layer):
            config |= {"toeplitz": False, "grid": None}
        return type(layer).from_config(config)

    dense = keras.models.clone_model(model, clone_function=clone)
    for layer, source in zip(dense.layers, model.layers, strict=True):
        if not _is_toeplitz(source):
            layer.set_weights(source.get_weights())
            continue
        values = {w.path: w for w in source.weights}
        projection = source.gate.spatial
        matrices = {
            "kernel": ops.convert_to_numpy(projection.matrices()),
            "bias": ops.convert_to_numpy(projection.bias),
        }
        for weight in layer.weights:
            if weight.path in values and "/spatial/" not in weight.path:
                weight.assign(values[weight.path])
            else:
                value = matrices[weight.name]
                weight.assign(value[0] if projection.heads == 1 else value)
    return dense


def _is_toeplitz(layer):
    return isinstance(layer, GMLPBlock) and layer.gate is not None and layer.toeplitz


def _fold_block(block, folded):
    """Assigns the weights of a block to its folded form."""
    (alpha, beta), (gamma,) = _arrays(block.norm1), _arrays(block.scale1)
    kernel, bias = _arrays(block.spatial)
    folded.spatial.kernel.assign(kernel)
    folded.scale.assign(gamma * alpha)
    # W (alpha x + beta) + b: the part of beta is the same for every image.
    folded.shift.assign(gamma * (kernel.sum(axis=0)[:, None] * beta + bias[:, None]))
    _assign(folded.expand, *_after_affine(block.expand, block.norm2))
    (gamma,), (kernel, bias) = _arrays(block.scale2), _arrays(block.shrink)
    _assign(folded.shrink, kernel * gamma, bias * gamma)


def _after_affine(dense, affine):
    """Returns kernel and bias of a dense layer with the Affine before it folded in."""
    (kernel, bias), (alpha, beta) = _arrays(dense), _arrays(affine)
    return alpha[:, None] * kernel, bias + beta @ kernel


def _arrays(layer):
    """Returns the weights in float64, so that folding adds no rounding error."""
    return [array.astype("float64") for array in layer.get_weights()]


def _assign(dense, kernel, bias):
    dense.kernel.assign(kernel)
    dense.bias.assign(bias)
