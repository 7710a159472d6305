"""The families of language models: each passes its block to `language_model`."""

import keras

from keras_gmlp.layers import GMLPBlock, TransformerBlock
from keras_gmlp.models.language_model import language_model


def gMLP(
    vocabulary_size: int,
    dim: int = 512,
    depth: int = 48,
    hidden_dim: int = 3072,
    gating: str = "split",
    attention_size: int = 0,
    toeplitz: bool = True,
    heads: int = 1,
    max_length: int = 128,
    name: str = "gmlp",
    **kwargs,
) -> keras.Model:
    """gMLP for text, "Pay Attention to MLPs" (https://arxiv.org/abs/2105.08050). Defaults: base.

    Args:
        vocabulary_size, dim, depth, max_length: See `language_model`.
        hidden_dim: Channels inside a block, the paper's d_ffn.
        gating: See `layers.SpatialGatingUnit`; `"none"` for blocks that do not mix tokens.
        attention_size: Head size of the tiny attention; 0 for none.
        toeplitz: Whether the weight between two tokens depends only on their distance, as in all
            language models of the paper.
        heads: Groups of channels with their own matrix over tokens.
        name: Name of the model.
        **kwargs: Further arguments of `language_model`.

    Returns:
        A compiled `keras.Model`; see `language_model`.

    Example:
        >>> model = gMLP(1000, dim=64, depth=2, hidden_dim=128)
        >>> model.output_shape
        (None, None, 1000)
    """
    arguments = {
        "hidden_dim": hidden_dim,
        "gating": gating,
        "attention_size": attention_size,
        "toeplitz": toeplitz,
        "heads": heads,
        "max_tokens": max_length,
    }
    sizes = {"dim": dim, "depth": depth, "max_length": max_length, "name": name}
    return language_model(GMLPBlock, arguments, vocabulary_size=vocabulary_size, **sizes, **kwargs)


def aMLP(
    vocabulary_size: int,
    dim: int = 512,
    depth: int = 36,
    hidden_dim: int = 3072,
    attention_size: int = 64,
    **kwargs,
) -> keras.Model:
    """aMLP for text: a gMLP whose gates have a tiny attention. Defaults: base.

    Args:
        vocabulary_size, dim, depth, hidden_dim, attention_size, **kwargs: See `gMLP`.

    Returns:
        A compiled `keras.Model`; see `language_model`.

    Example:
        >>> aMLP(1000, dim=64, depth=2, hidden_dim=128).name
        'amlp'

    Reference: "Pay Attention to MLPs", https://arxiv.org/abs/2105.08050, section 4.3.
    """
    kwargs = {"name": "amlp", **kwargs}
    return gMLP(vocabulary_size, dim, depth, hidden_dim, attention_size=attention_size, **kwargs)


def BERT(
    vocabulary_size: int,
    dim: int = 768,
    depth: int = 12,
    num_heads: int = 12,
    mlp_ratio: float = 4,
    relative: bool = True,
    content: bool = True,
    max_length: int = 128,
    name: str = "bert",
    **kwargs,
) -> keras.Model:
    """BERT, "BERT" (https://arxiv.org/abs/1810.04805), with norms before the branches by default.

    Dense layers and embeddings start from a truncated normal distribution of standard deviation
    0.02, as published.

    Args:
        vocabulary_size, dim, depth, max_length: See `language_model`.
        num_heads: Attention heads; they share the channels equally.
        mlp_ratio: Hidden channels of the feed-forward network relative to `dim`.
        relative: Whether attention has learned biases for the distance of two tokens, as in T5;
            otherwise each position has a learned vector, as in the original.
        content: Whether attention depends on the tokens; `False` leaves only the biases.
        name: Name of the model.
        **kwargs: Further arguments of `language_model`. `norm_placement="post"`, `segments=2`,
            `relative=False` and `epsilon=1e-12` give the original.

    Returns:
        A compiled `keras.Model`; see `language_model`.

    Raises:
        ValueError: If the channels are not a multiple of the heads, or `content=False` without
            `relative=True`.

    Example:
        >>> BERT(1000, dim=64, depth=2, num_heads=2).output_shape
        (None, None, 1000)
    """
    arguments = {
        "num_heads": num_heads,
        "hidden_dim": round(mlp_ratio * dim),
        "relative": relative,
        "content": content,
        "max_tokens": max_length,
    }
    sizes = {"dim": dim, "depth": depth, "max_length": max_length, "name": name}
    published = keras.initializers.TruncatedNormal(stddev=0.02)
    settings = {"positions": not relative, "kernel_initializer": published, **kwargs}
    return language_model(
        TransformerBlock, arguments, vocabulary_size=vocabulary_size, **sizes, **settings
    )
