"""Wrong usage of each program: exit code 2 and one line, before anything is written."""

import sys

import pytest

TRAIN = [
    (["--model", "gmlp_n4_23"], "Did you mean 'gmlp_n4_32'"),
    (["--recipe", "fast"], "one of: quick, standard, long, finetune, resolution, imagenet"),
    (["--set", "mixpu=0.3"], "no such setting"),
    (["--set", "mixup=much"], "expected mixup=NUMBER"),
    (["--set", "warmup=null"], "expected warmup=NUMBER"),
    (["--set", "warmup=[0.1]"], "expected warmup=NUMBER"),
    (["--set", "resized_crop=all"], "expected resized_crop=[SMALLEST,LARGEST], or 0"),
    (["--set", "resized_crop=[1,2]"], "such as [0.08, 1]; received [1, 2]"),
    (["--seed", "-1"], "seed must be in"),
    (["--set", "mixup=3"], "must be in [0, 1]"),
    (["--epochs", "0"], "at least 1"),
    (["--freeze"], "give --weights"),
    (["--set", "freeze=1"], "give --weights"),
    (["--weights", "runs/a/", "--out", "runs/a"], "is where the weights are"),
    (["--weights", "runs/a/model.keras", "--out", "runs/a"], "is where the weights are"),
    (["--epochs", "many"], "invalid int"),
    (["--devices", "two"], "expected a number or all; received 'two'"),
    (["--checkpoint-minutes", "0"], "expected a number above 0; received '0'"),
    (["--devices", "2"], "several devices require the JAX backend"),
    (["--model-parallel", "2"], "--backend jax"),
    (["--callback", "own"], "expected MODULE:CLASS"),
    (["--callback", "nowhere:Own"], "no module nowhere, neither in this folder nor installed"),
    (["--callback", "own:Other"], "the module has no Other"),
    (["--callback", "own:number"], "expected a subclass of keras.callbacks.Callback"),
]
BENCHMARK = [
    (["gmlp_n4_23"], "Did you mean 'gmlp_n4_32'"),
    (["."], "no model.keras in this folder"),
    (["a/gmlp_n4_32", "gmlp_n4_32"], "different names; received gmlp_n4_32, gmlp_n4_32"),
    (["--only", "tflight"], "unknown candidates: tflight; expected some of keras-tensorflow"),
    (["--rounds", "0"], "at least 1"),
    (["--batch", "0"], "at least 1"),
    (["--threads", "many"], "invalid int"),
]
OTHERS = [
    ("calibrate", ["--data", "photos"], "required: RUN"),
    ("classify", [], "required: IMAGE|FOLDER"),
    ("export", [".", "--no-check", "--formats", "tflite_int8"], "leave out --no-check"),
    ("serve", ["--port", "65536"], "from 0 to 65535"),
    ("serve", ["--port", "x"], "invalid int"),
    ("serve", ["more"], "unrecognized"),
    ("fill_mask", [], "give a text"),
    ("classify_text", ["a", "b", "--pair", "c"], "--pair"),
    ("classify_text", ["a", "--top", "0"], "at least 1"),
    ("answer", ["who"], "--context"),
    ("teach", ["a.onnx", "--data", ".", "--out", "b", "--views", "0"], "at least 1; received 0"),
]


@pytest.mark.parametrize(
    ("name", "arguments", "reason"),
    [("train", *row) for row in TRAIN] + [("benchmark", *row) for row in BENCHMARK] + OTHERS,
)
def test_wrong_usage(name, arguments, reason, app, tmp_path, monkeypatch):
    (tmp_path / "own.py").write_text("number = 1\n")
    (tmp_path / "a" / "gmlp_n4_32").mkdir(parents=True)
    (tmp_path / "a" / "gmlp_n4_32" / "model.keras").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "own", raising=False)
    code, output, error = app(name, *arguments)
    assert (code, output, error.count("\n")) == (2, "", 1)
    assert reason in error
    assert {path.name for path in tmp_path.iterdir()} - {"__pycache__"} == {"own.py", "a"}
