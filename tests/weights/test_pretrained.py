"""Models that begin with weights: what comes along, what is resized, what starts afresh."""

import dataclasses
import json

import keras
import numpy as np
import pytest
from check_layer import redraw_weights, to_numpy
from PIL import Image
from refused import refused
from sklearn.datasets import load_sample_image

import keras_gmlp
from keras_gmlp.data.images.read_image import read_image
from keras_gmlp.models.presets import lookup
from keras_gmlp.utils.card import read_card
from keras_gmlp.weights import pretrained
from keras_gmlp.weights.loading import load
from keras_gmlp.weights.names import ARCHITECTURES
from keras_gmlp.weights.pretrained import Pretrained

safetensors = pytest.importorskip("safetensors.numpy")

NAME = "mixer_n4_32"
LABELS = tuple("abcdefghij")
MLPS = ["gmlp_s16_224", "mixer_b16_224", "resmlp_12_224", "resmlp_24_224", "resmlp_36_224"]
PREPARATION = {"crop": 0.8, "interpolation": "bilinear"}


@pytest.fixture(scope="module")
def ours():
    model = keras_gmlp.build(NAME, mean=[0.1, 0.2, 0.3], std=0.4)
    redraw_weights(model)
    return Pretrained(model, NAME, LABELS, PREPARATION, "here")


@pytest.fixture(scope="module")
def published(ours, tmp_path_factory):
    path = tmp_path_factory.mktemp("published") / "model.safetensors"
    ours.save_published(path)
    return path


@pytest.fixture
def convert(app):
    """A function that runs the program; returns its exit code, its output and its errors."""
    return lambda source, out, *options: app("convert", source, "--out", out, *options)


def images(side=32):
    return np.random.default_rng(0).integers(0, 256, (2, side, side, 3)).astype("float32")


def same_logits(one, other):
    np.testing.assert_allclose(to_numpy(one(images())), to_numpy(other(images())), atol=1e-5)
    return True


def test_published_weights_there_and_back(ours, published):
    found = pretrained.load(published)
    assert same_logits(found.model, ours.model)
    assert (found.preset, found.labels) == (NAME, LABELS)
    assert found.preparation == PREPARATION
    assert same_logits(keras_gmlp.build(NAME, weights=published), ours.model)


def test_keras_file_carries_all_that_belongs_to_it(ours, tmp_path):
    ours.save(tmp_path / "moved.keras")
    found = pretrained.load(tmp_path / "moved.keras")
    assert same_logits(found.model, ours.model)
    assert (found.preset, found.labels) == (NAME, LABELS)
    compiled = keras.saving.load_model(tmp_path / "moved.keras")
    assert compiled.evaluate(images(), np.array([0, 1]), verbose=0)[0] > 0
    assert load(tmp_path / "moved.keras").preparation == PREPARATION


def test_card_holds_the_arguments_that_rebuild_the_model(tmp_path):
    arguments = {"depth": 2, "token_hidden_dim": 8, "input_shape": (16, 24, 3), "classes": 10}
    model = keras_gmlp.build(NAME, **arguments)
    Pretrained(model, NAME, LABELS, {}, "here", arguments=arguments).save(tmp_path / "model.keras")
    card = read_card(tmp_path / "model.keras")
    assert card["arguments"] == {**arguments, "input_shape": [16, 24, 3]}
    rebuilt = keras_gmlp.build(card["preset"], **card["arguments"])
    assert [w.path for w in rebuilt.weights] == [w.path for w in model.weights]
    found = pretrained.load(tmp_path)
    assert found.adapt()[1].fresh == found.adapt()[1].resized == ()
    adapted, report = found.adapt(input_shape=(32, 32, 3))
    assert adapted.get_layer("block_1").token_mlp.hidden_dim == 8  # not the preset's
    assert report.resized


def test_arguments_of_a_file_without_them_come_from_its_structure(tmp_path):
    sizes = {"input_shape": (48, 48, 3), "patch_window": 6, "classes": 4}
    keras_gmlp.build("gmlp_n4_32", mean=[0.1, 0.2, 0.3], **sizes).save(tmp_path / "model.keras")
    found = pretrained.load(tmp_path)
    assert found.arguments is None
    arguments = found.build_arguments()
    np.testing.assert_allclose(arguments.pop("mean"), [0.1, 0.2, 0.3], atol=1e-6)
    np.testing.assert_allclose(arguments.pop("std"), [0.5] * 3, atol=1e-6)
    assert arguments == {"patch_size": 4, **sizes}


def test_other_classes_start_afresh(ours):
    model, moved = ours.adapt(("cat", "dog"))
    assert moved.fresh == ("head/kernel", "head/bias")
    assert np.abs(to_numpy(model(images()))).max() == 0
    assert model.output_shape == (None, 2)
    assert ours.adapt(LABELS)[1].fresh == ()
    assert ours.adapt(LABELS[::-1])[1].fresh == moved.fresh  # as many, with other names


def test_another_image_size_is_resized_and_keeps_its_normalization(ours):
    model, moved = ours.adapt(input_shape=(48, 40, 3), stochastic_depth=0.1)
    assert model.input_shape == (None, 48, 40, 3)
    assert not moved.fresh
    assert len(moved.resized) == 3 * 6  # two kernels and a bias over tokens in six blocks
    wider, moved = ours.adapt(input_shape=(48, 48, 3), patch_window=6)
    assert len(moved.resized) == 3 * 6 + 1  # and the stem's kernel
    again, moved = dataclasses.replace(ours, model=wider).adapt()  # whose window is kept
    assert not moved.resized
    assert again.get_layer("stem").patch_window == 6
    flat = np.full((1, 48, 40, 3), 90.0)
    before = ours.model.get_layer("normalization")(flat)
    np.testing.assert_allclose(
        to_numpy(model.get_layer("normalization")(flat)), to_numpy(before), atol=1e-6
    )


def test_what_cannot_be_loaded_is_said_in_one_line(published, tmp_path):
    vit, path = "vit_tiny_patch16_224", tmp_path / "bare.safetensors"
    path.write_bytes(published.read_bytes())
    for config, preset, message in (
        ({}, None, "name the preset"),
        ({"architecture": vit}, NAME, "weights of vit_ti16_224"),
        ({"architecture": NAME, "global_pool": "token"}, None, "head reads 'token'"),
        ({"architecture": vit, "model_args": {"num_heads": 6}}, None, "num_heads 6"),
    ):
        (tmp_path / "config.json").write_text(json.dumps(config))
        with refused(message, path):
            pretrained.load(path, preset)
    with refused("no such", tmp_path / "none.keras"):
        pretrained.load(tmp_path / "none.keras")


def test_head_stays_only_where_the_names_are_known(ours, tmp_path):
    nameless = dataclasses.replace(ours, labels=None)
    nameless.save(tmp_path / "model.keras")
    for found in (nameless, pretrained.load(tmp_path)):
        assert found.labels is None
        assert found.adapt()[1].fresh == ()
        assert found.adapt(tuple("0123456789"))[1].fresh == ("head/kernel", "head/bias")
    assert load(tmp_path).labels == tuple("0123456789")


def test_checkpoint_without_a_head_is_there_to_be_trained_on(ours, tmp_path):
    path = tmp_path / "model.safetensors"
    ours.save_published(path)
    arrays = {n: a for n, a in safetensors.load_file(path).items() if not n.startswith("head")}
    safetensors.save_file(arrays, path)
    found = pretrained.load(path)
    assert (found.headless, found.labels) == (True, None)
    model, moved = found.adapt(("cat", "dog"))
    assert moved.fresh == ("head/kernel", "head/bias")
    kernels = [m.get_layer("block_2").token_mlp.expand.kernel for m in (model, ours.model)]
    np.testing.assert_array_equal(*map(to_numpy, kernels))
    for use in (found.classifier, lambda: found.save(tmp_path / "model.keras")):
        with refused("has no head"):
            use()


def test_what_a_published_file_could_not_tell_is_not_written(tmp_path):
    for model, preparation, message in (
        ({"patch_window": 6}, {}, "sizes"),
        ({}, {"fit": "pad"}, "received pad"),
    ):
        found = Pretrained(keras_gmlp.build(NAME, **model), NAME, LABELS, preparation, "here")
        with refused(message):
            found.save_published(tmp_path / "model.safetensors")
        assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["resmlp_12_224", "deit_ti16_distilled_224"])
def test_timm_reads_what_we_publish(timm, tmp_path, preset):
    """At another size and with other classes, which timm learns from config.json."""
    import torch

    model = keras_gmlp.build(preset, input_shape=(64, 64, 3), classes=5)
    redraw_weights(model, stddev=0.02)
    ours = Pretrained(model, preset, tuple("abcde"), PREPARATION, "here")
    ours.save_published(tmp_path / "model.safetensors")
    theirs = timm.create_model(f"local-dir:{tmp_path}", pretrained=True).eval()
    x = (images(64) / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    with torch.no_grad():
        expected = theirs(torch.from_numpy(x.transpose(0, 3, 1, 2)).float()).numpy()
    assert np.abs(expected).max() > 1e-3
    np.testing.assert_allclose(to_numpy(model(images(64))), expected, atol=1e-4)


def test_preparation_without_a_config_is_timm_s(timm):
    for name in (*list(ARCHITECTURES)[:4], *MLPS):
        cfg = timm.models.get_pretrained_cfg(name)
        family, arguments = lookup(ARCHITECTURES.get(name, name))
        assert cfg.crop_pct == pretrained.CROP.get(family, pretrained.OTHER_CROP)
        assert cfg.interpolation == "bicubic"
        for key in ("mean", "std"):
            assert list(getattr(cfg, key)) == list(np.broadcast_to(arguments.get(key, 0.5), 3))


@pytest.mark.parametrize(
    ("size", "crop", "interpolation"),
    [((640, 427), 0.875, "bicubic"), ((251, 250), 0.9, "bilinear")],
)
def test_preparation_is_timm_s(timm, tmp_path, size, crop, interpolation):
    from timm.data import create_transform

    photo = Image.fromarray(load_sample_image("china.jpg")).resize(size)
    photo.save(tmp_path / "photo.jpg", quality=90)
    norm = {"mean": (0.5, 0.5, 0.5), "std": (0.5, 0.5, 0.5)}
    transform = create_transform((3, 224, 224), crop_pct=crop, interpolation=interpolation, **norm)
    with Image.open(tmp_path / "photo.jpg") as opened:
        expected = transform(opened.convert("RGB")).numpy().transpose(1, 2, 0)
    pixels = read_image(tmp_path / "photo.jpg", (224, 224, 3), crop, interpolation)
    np.testing.assert_allclose(pixels / 127.5 - 1, expected, atol=1e-2)


def test_convert_there_and_back(ours, published, tmp_path, convert):
    run, again = tmp_path / "run", tmp_path / "again" / "model.safetensors"
    code, out, _ = convert(published, run, "--json")
    assert (code, json.loads(out)["preset"]) == (0, NAME)
    assert load(run).labels == LABELS
    code, _, error = convert(published, run)
    assert (code, "holds a model already" in error, error.count("\n")) == (1, True, 1)
    assert convert(run, again)[0] == 0
    assert convert(run, again)[0] == 1  # exists
    assert same_logits(pretrained.load(again).model, ours.model)
    wide = tmp_path / "wide.keras"
    code, out, _ = convert(published, wide, "--image-size", "32x48")
    assert (code, "18 resized" in out) == (0, True)
    assert load(wide).image_shape == (32, 48, 3)
    assert read_card(wide)["arguments"]["input_shape"] == [32, 48, 3]


def test_convert_keeps_thresholds_and_calibration(ours, tmp_path, convert):
    calibrated = {"temperature": 1.5, "energy_threshold": -2.0}
    several = {"thresholds": [0.25] * len(LABELS)}
    for name, decision in (("one", calibrated), ("several", several)):
        path, again = tmp_path / f"{name}.keras", tmp_path / f"{name}-again.keras"
        dataclasses.replace(ours, decision=decision).save(path)
        assert convert(path, again)[::2] == (0, "")
        assert read_card(again).items() >= decision.items()
    published = tmp_path / "model.safetensors"
    assert convert(tmp_path / "several.keras", published)[0] == 1
    for source, arguments, reason in (
        ("one", [published], "temperature"),
        ("several", [tmp_path / "several-64.keras", "--image-size", "64"], "train at this size"),
    ):
        code, _, note = convert(tmp_path / f"{source}.keras", *arguments)
        assert (code, reason in note) == (0, True)
