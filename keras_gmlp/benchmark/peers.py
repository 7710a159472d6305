"""The training of other packages, next to which `training_speed` measures this one."""

from keras_gmlp.benchmark.harness import time_calls

BATCH = 128  # of timm on a CPU, as of the script of this package
LENGTH, WORDS = 128, 8192  # of a window of text, of a vocabulary


def train_timm(half, options, folder):
    """Measures timm's blocks on a CPU."""
    from keras_gmlp.benchmark.runtimes import import_torchvision

    import_torchvision()
    import torch
    from timm.layers import GatedMlp
    from timm.models.mlp_mixer import MlpMixer, SpatialGatingBlock

    sizes = {"num_classes": 10, "img_size": 32, "patch_size": 4, "num_blocks": 7, "embed_dim": 192}
    blocks = {"mlp_ratio": 2, "block_layer": SpatialGatingBlock, "mlp_layer": GatedMlp}
    model = MlpMixer(**sizes, **blocks).train()
    parameters = sum(p.numel() for p in model.parameters())
    if parameters != 824_394:
        raise ValueError(f"timm's model has {parameters:,} parameters")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
    loss_function = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
    images = torch.randint(256, (options.steps, BATCH, 3, 32, 32), dtype=torch.uint8)
    labels = torch.randint(10, (options.steps, BATCH))

    def train_epoch():
        for batch, target in zip(images, labels, strict=True):
            loss = _step(
                optimizer,
                lambda x=batch, y=target: loss_function(model(x / 127.5 - 1), y),
                ("cpu", half),
                clipped=model,
            )
        loss.item()

    return time_calls(train_epoch, options.epochs - 1, BATCH * options.steps)


def train_compiled_timm(preset, options, folder):
    """Measures timm's model under `torch.compile`."""
    from keras_gmlp.benchmark.files import timm_architecture
    from keras_gmlp.benchmark.runtimes import import_torchvision
    from keras_gmlp.models.presets import lookup

    import_torchvision()
    import timm
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = timm.create_model(timm_architecture(preset), num_classes=1000).to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), fused=device == "cuda")
    loss_function = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
    size = lookup(preset)[1]["input_shape"][0]
    images = torch.randn(options.batch, 3, size, size, device=device)
    labels = torch.randint(1000, (options.batch,), device=device)
    compiled, steps = torch.compile(model), min(options.steps, 20)

    def train_steps():
        for _ in range(steps):
            loss = _step(optimizer, lambda: loss_function(compiled(images), labels), (device, True))
        float(loss)  # waits for the device

    return time_calls(train_steps, 3, options.batch * steps)


def make_bert_step(precision, *arrays):
    """Returns a function that trains one step of Hugging Face's BERT."""
    import torch
    import transformers
    from transformers.utils import import_utils

    # BERT needs no images, and a torchvision for another build of PyTorch fails to import.
    import_utils.is_torchvision_available = lambda: False
    transformers.utils.is_torchvision_available = lambda: False
    config = transformers.BertConfig(
        vocab_size=WORDS,
        hidden_size=128,
        num_hidden_layers=9,
        num_attention_heads=2,
        intermediate_size=512,
        max_position_embeddings=LENGTH,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = transformers.BertForMaskedLM(config).to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    ids, places, targets = (torch.as_tensor(array).long().to(device) for array in arrays)

    def compute_loss():
        hidden = model.bert(ids).last_hidden_state
        # At the masked places only, which its own forward does not offer.
        logits = model.cls(torch.take_along_dim(hidden, places[:, :, None], dim=1))
        return torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), targets.flatten())

    def step():
        loss = _step(optimizer, compute_loss, (device, precision == "mixed_bfloat16"))
        loss.item()  # waits for the device

    return step


def _step(optimizer, compute_loss, place, clipped=None):
    """Trains one step on `place`, a device and whether to compute in bfloat16; returns the loss."""
    import torch

    device, half = place
    with torch.autocast(device, torch.bfloat16, enabled=half):
        loss = compute_loss()
    optimizer.zero_grad()
    loss.backward()
    if clipped is not None:
        torch.nn.utils.clip_grad_norm_(clipped.parameters(), 1.0)
    optimizer.step()
    return loss
