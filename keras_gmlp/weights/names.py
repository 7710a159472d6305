"""The names of published weights: one table for each family and dialect."""

from keras_gmlp.layers import (
    FeedForwardOnlyBlock,
    GMLPBlock,
    MixerBlock,
    ResMLPBlock,
    TransformerBlock,
)

# Rows of (their name, our path, kind); "{}" is the number of the block.
_HEAD = (("norm", "norm", "norm"), ("head", "head", "dense"))
_ENDS = (("stem.proj", "stem/projection", "convolution"), *_HEAD)
_TOKEN = (
    ("cls_token", "class_token/token", "array"),
    ("patch_embed.proj", "stem/projection", "convolution"),
    *_HEAD,
)
_NORMS = tuple((f"blocks.{{}}.norm{i}", f"block_{{}}/norm{i}", "norm") for i in (1, 2))


def _mlp(theirs, ours=""):
    """Returns the rows of the two dense layers of a feed-forward network."""
    layers = (("fc1", "expand"), ("fc2", "shrink"))
    return [(f"blocks.{{}}.{theirs}.{t}", f"block_{{}}/{ours}{o}", "dense") for t, o in layers]


_MLP = _mlp("mlp_channels")


def _res_mlp(stem, norm, spatial, scale, mlp):
    """Returns the rows of a ResMLP, whose two dialects differ in these names."""
    rows = [(stem, "stem/projection", "convolution"), ("norm", "norm", norm), _HEAD[1]]
    rows.append((f"blocks.{{}}.{spatial}", "block_{}/spatial", "dense"))
    for i in (1, 2):
        rows.append((f"blocks.{{}}.norm{i}", f"block_{{}}/norm{i}", norm))
        rows.append((f"blocks.{{}}.{scale}{i}", f"block_{{}}/scale{i}/gamma", "array"))
    return (*rows, *_mlp(mlp))


OPTIONAL = {"class_token", "distillation_token", "head_distillation"}  # layers of a `ViT`

_QKV = ("query", "key", "value")
_ATTENTION = "Transformer/encoderblock_{}/MultiHeadDotProductAttention_1"

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
            *_mlp("mlp_tokens", "token_mlp/"),
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
        "timm": _res_mlp("stem.proj", "affine", "linear_tokens", "ls", "mlp_channels"),
        "release": _res_mlp("patch_embed.proj", "plain affine", "attn", "gamma_", "mlp"),
    },
    TransformerBlock: {
        "timm": (
            *_TOKEN,
            ("dist_token", "distillation_token/token", "array"),
            ("head_dist", "head_distillation", "dense"),
            ("pos_embed", "position/embedding", "array"),
            *_NORMS,
            ("blocks.{}.attn.qkv", "block_{}/attention", "qkv"),
            ("blocks.{}.attn.proj", "block_{}/attention/attention_output", "heads"),
            *_mlp("mlp"),
        ),
        "flax": (
            ("cls", "class_token/token", "array"),
            ("Transformer/posembed_input/pos_embedding", "position/embedding", "array"),
            ("embedding", "stem/projection", "flax"),
            ("Transformer/encoderblock_{}/LayerNorm_0", "block_{}/norm1", "flax norm"),
            *((f"{_ATTENTION}/{n}", f"block_{{}}/attention/{n}", "flax") for n in _QKV),
            (f"{_ATTENTION}/out", "block_{}/attention/attention_output", "flax"),
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
            *_mlp("mlp1"),
            *_mlp("mlp2", "token_mlp/"),
        )
    },
}

# The names of a BERT in the package transformers, without "bert.".
_LAYER = "encoder.layer.{}"
BERT = (
    ("embeddings.word_embeddings.weight", "token_embedding/embeddings", "array"),
    ("embeddings.position_embeddings.weight", "position/embedding", "row"),
    ("embeddings.token_type_embeddings.weight", "segment/embedding", "array"),
    ("embeddings.LayerNorm", "embedding_norm", "norm"),
    *((f"{_LAYER}.attention.self.{n}", f"block_{{}}/attention/{n}", "to heads") for n in _QKV),
    ("encoder.layer.{}.attention.output.dense", "block_{}/attention/attention_output", "heads"),
    ("encoder.layer.{}.attention.output.LayerNorm", "block_{}/norm1", "norm"),
    ("encoder.layer.{}.intermediate.dense", "block_{}/expand", "dense"),
    ("encoder.layer.{}.output.dense", "block_{}/shrink", "dense"),
    ("encoder.layer.{}.output.LayerNorm", "block_{}/norm2", "norm"),
)

# What follows the encoder in each class of transformers; that of BertModel is not read.
BERT_HEADS = {
    "BertModel": (),
    "BertForMaskedLM": (
        ("cls.predictions.transform.dense", "head_transform/dense", "dense"),
        ("cls.predictions.transform.LayerNorm", "head_transform/norm", "norm"),
        ("cls.predictions.bias", "head_bias/bias", "array"),
    ),
    "BertForSequenceClassification": (
        ("pooler.dense", "head_pooler", "dense"),
        ("classifier", "head", "dense"),
    ),
}

# Presets by the names of timm's architectures, if the names differ.
ARCHITECTURES = {
    f"{family}_{theirs}{kind}_patch16_224": f"{family}_{ours}16{kind}_224"
    for family, kind in (("vit", ""), ("deit", ""), ("deit", "_distilled"))
    for theirs, ours in (("tiny", "ti"), ("small", "s"), ("base", "b"))
}
