"""The names of published weights: one table for each family and dialect."""

from keras_gmlp.layers import (
    FeedForwardOnlyBlock,
    GMLPBlock,
    MixerBlock,
    ResMLPBlock,
    TransformerBlock,
)

# Rows of (their name, our path, kind); "{}" is the number of the block.
_MLP = (
    ("blocks.{}.mlp_channels.fc1", "block_{}/expand", "dense"),
    ("blocks.{}.mlp_channels.fc2", "block_{}/shrink", "dense"),
)

_ENDS = (
    ("stem.proj", "stem/projection", "convolution"),
    ("norm", "norm", "norm"),
    ("head", "head", "dense"),
)

_NORMS = (
    ("blocks.{}.norm1", "block_{}/norm1", "norm"),
    ("blocks.{}.norm2", "block_{}/norm2", "norm"),
)

_TOKEN = (
    ("cls_token", "class_token/token", "array"),
    ("patch_embed.proj", "stem/projection", "convolution"),
    ("norm", "norm", "norm"),
    ("head", "head", "dense"),
)

DISTILLED = (
    ("dist_token", "distillation_token/token", "array"),
    ("head_dist", "head_distillation", "dense"),
)

TABLES = {
    GMLPBlock: {
        "timm": (
            *_ENDS,
            *_MLP,
            ("blocks.{}.norm", "block_{}/norm", "norm"),
            ("blocks.{}.mlp_channels.gate.norm", "block_{}/gate/norm", "norm"),
            ("blocks.{}.mlp_channels.gate.proj", "block_{}/gate/spatial", "dense"),
        )
    },
    MixerBlock: {
        "timm": (
            *_ENDS,
            *_MLP,
            *_NORMS,
            ("blocks.{}.mlp_tokens.fc1", "block_{}/token_mlp/expand", "dense"),
            ("blocks.{}.mlp_tokens.fc2", "block_{}/token_mlp/shrink", "dense"),
        ),
        "flax": (
            ("stem", "stem/projection", "flax"),
            ("MixerBlock_{}/LayerNorm_0", "block_{}/norm1", "flax norm"),
            ("MixerBlock_{}/token_mixing/Dense_0", "block_{}/token_mlp/expand", "flax"),
            ("MixerBlock_{}/token_mixing/Dense_1", "block_{}/token_mlp/shrink", "flax"),
            ("MixerBlock_{}/LayerNorm_1", "block_{}/norm2", "flax norm"),
            ("MixerBlock_{}/channel_mixing/Dense_0", "block_{}/expand", "flax"),
            ("MixerBlock_{}/channel_mixing/Dense_1", "block_{}/shrink", "flax"),
            ("pre_head_layer_norm", "norm", "flax norm"),
            ("head", "head", "flax"),
        ),
    },
    ResMLPBlock: {
        "timm": (
            ("stem.proj", "stem/projection", "convolution"),
            ("blocks.{}.norm1", "block_{}/norm1", "affine"),
            ("blocks.{}.linear_tokens", "block_{}/spatial", "dense"),
            ("blocks.{}.ls1", "block_{}/scale1/gamma", "array"),
            ("blocks.{}.norm2", "block_{}/norm2", "affine"),
            *_MLP,
            ("blocks.{}.ls2", "block_{}/scale2/gamma", "array"),
            ("norm", "norm", "affine"),
            ("head", "head", "dense"),
        ),
        "release": (
            ("patch_embed.proj", "stem/projection", "convolution"),
            ("blocks.{}.norm1", "block_{}/norm1", "plain affine"),
            ("blocks.{}.attn", "block_{}/spatial", "dense"),
            ("blocks.{}.gamma_1", "block_{}/scale1/gamma", "array"),
            ("blocks.{}.norm2", "block_{}/norm2", "plain affine"),
            ("blocks.{}.mlp.fc1", "block_{}/expand", "dense"),
            ("blocks.{}.mlp.fc2", "block_{}/shrink", "dense"),
            ("blocks.{}.gamma_2", "block_{}/scale2/gamma", "array"),
            ("norm", "norm", "plain affine"),
            ("head", "head", "dense"),
        ),
    },
    TransformerBlock: {
        "timm": (
            *_TOKEN,
            ("pos_embed", "position/embedding", "array"),
            *_NORMS,
            ("blocks.{}.attn.qkv", "block_{}/attention", "qkv"),
            ("blocks.{}.attn.proj", "block_{}/attention/attention_output", "heads"),
            ("blocks.{}.mlp.fc1", "block_{}/expand", "dense"),
            ("blocks.{}.mlp.fc2", "block_{}/shrink", "dense"),
        ),
        "flax": (
            ("cls", "class_token/token", "array"),
            ("Transformer/posembed_input/pos_embedding", "position/embedding", "array"),
            ("embedding", "stem/projection", "flax"),
            ("Transformer/encoderblock_{}/LayerNorm_0", "block_{}/norm1", "flax norm"),
            *(
                (
                    f"Transformer/encoderblock_{{}}/MultiHeadDotProductAttention_1/{theirs}",
                    f"block_{{}}/attention/{ours}",
                    "flax",
                )
                for theirs, ours in (
                    ("query", "query"),
                    ("key", "key"),
                    ("value", "value"),
                    ("out", "attention_output"),
                )
            ),
            ("Transformer/encoderblock_{}/LayerNorm_2", "block_{}/norm2", "flax norm"),
            ("Transformer/encoderblock_{}/MlpBlock_3/Dense_0", "block_{}/expand", "flax"),
            ("Transformer/encoderblock_{}/MlpBlock_3/Dense_1", "block_{}/shrink", "flax"),
            ("Transformer/encoder_norm", "norm", "flax norm"),
            ("head", "head", "flax"),
        ),
    },
    FeedForwardOnlyBlock: {
        "release": (
            *_TOKEN,
            ("pos_encoding", "position/embedding", "grid positions"),
            *_NORMS,
            ("blocks.{}.mlp1.fc1", "block_{}/expand", "dense"),
            ("blocks.{}.mlp1.fc2", "block_{}/shrink", "dense"),
            ("blocks.{}.mlp2.fc1", "block_{}/token_mlp/expand", "dense"),
            ("blocks.{}.mlp2.fc2", "block_{}/token_mlp/shrink", "dense"),
        )
    },
}

# Presets by the names of timm's architectures, if the names differ.
ARCHITECTURES = {
    f"{theirs}_patch16_224": f"{ours}_224"
    for theirs, ours in (
        ("vit_tiny", "vit_ti16"),
        ("vit_small", "vit_s16"),
        ("vit_base", "vit_b16"),
        ("deit_tiny", "deit_ti16"),
        ("deit_small", "deit_s16"),
        ("deit_base", "deit_b16"),
        ("deit_tiny_distilled", "deit_ti16_distilled"),
        ("deit_small_distilled", "deit_s16_distilled"),
        ("deit_base_distilled", "deit_b16_distilled"),
    )
}
