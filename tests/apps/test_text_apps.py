"""The programs for text models: what they print, and their exit codes."""

import io
import json
import shutil
import sys
from types import SimpleNamespace

import pytest
from load_app import load_app
from small_text import LABELS, LINES, save_small_model, small_tokenizer

from keras_gmlp.data.text.tokenizer import Tokenizer
from keras_gmlp.inference.card_update import update_card
from keras_gmlp.tasks.registry import find_task

FRANCE = "Paris is the [MASK] of France."
TASKS = {"fill_mask": "masked_lm", "classify": "text_classification"}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A `.keras` file for each program."""
    folder, tokenizer = tmp_path_factory.mktemp("models"), small_tokenizer()
    paths = {}
    for name, task in TASKS.items():
        paths[name] = folder / f"{task}.keras"
        save_small_model(paths[name], task, tokenizer)
    return paths


@pytest.fixture
def run(models, app):
    """Runs a program with its model; returns the exit code, the lines printed and the errors."""

    def run(name, *arguments, model=None):
        code, output, errors = app(name, *arguments, "--model", model or models[name])
        return code, output.splitlines(), errors

    return run


def give_input(monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


@pytest.mark.parametrize(
    ("options", "kept"),
    [([], "café"), (["--cased"], "Café"), (["--strip-accents"], "cafe")],
)
def test_marks_are_kept_unless_asked(tmp_path, options, kept):
    program = load_app("train")
    given = ["--prepared", str(tmp_path / "prepared")]
    for option in ("--text", "--valid"):
        path = tmp_path / f"{option}.txt"
        path.write_text("Café au lait, café\n" * 9, "utf-8")
        given += [option, str(path)]
    for more in (options, []):  # the later one takes the stored tokenizer
        parsed = program.main.parse([*given, *more])
        program.prepare_text(parsed, *parsed.runs)
        tokenizer = Tokenizer.load(tmp_path / "prepared" / "tokenizer.json")
        assert tokenizer.decode(tokenizer.encode("Café").ids) == kept
    parsed = program.main.parse([*given, "--cased", "--strip-accents"])
    with pytest.raises(ValueError, match="tokenizer"):
        program.prepare_text(parsed, *parsed.runs)


def test_unknown_tokens_are_a_warning():
    texts = SimpleNamespace(texts=["ελληνικά γράμματα"])
    data = SimpleNamespace(train=texts, tokenizer=small_tokenizer())
    assert "100.0 % of the tokens" in find_task("text_classification").find_unknown(data)
    data.train = SimpleNamespace(texts=[("a gem", LINES[0])])
    assert not find_task("text_classification").find_unknown(data)


def test_fill_mask_prints_bars_and_json_and_answers_the_next_text(run, tmp_path):
    code, lines, errors = run("fill_mask", "[MASK] is the [MASK].", "--top", "2")
    assert (code, errors, len(lines)) == (0, "", 7)
    assert [line for line in lines if "MASK" in line][1:] == ["  [MASK] 1", "  [MASK] 2"]
    assert lines[2].split()[2] == "%"
    path = tmp_path / "texts.txt"
    path.write_text(f"{FRANCE}\n\nParis\n", "utf-8")
    code, (line,), errors = run("fill_mask", "Paris", "--file", path, "--json", "--top", "1")
    found = json.loads(line)
    assert (code, found["text"]) == (1, FRANCE)
    assert set(found["predictions"][0]) == {"score", "token", "token_str", "sequence"}
    first, second = errors.splitlines()
    assert first.startswith("fill_mask: no [MASK] in the text")
    assert second.startswith(f"fill_mask: {path}, line 3: no [MASK] in the text")


def test_a_file_that_is_not_utf_8_is_an_error(run, tmp_path, monkeypatch):
    other, latin = (tmp_path / name for name in ("other.txt", "latin.txt"))
    other.write_text("a film\n", "utf-8")
    latin.write_bytes("a\ncafé".encode("latin-1"))
    code, lines, error = run("classify", "--file", other, "--file", latin, "--json")
    assert (code, len(lines)) == (1, 2)
    assert error.startswith(f"classify: {latin}: not UTF-8 in line 2")
    give_input(monkeypatch, b"")  # as after grep without a match
    assert run("classify", "-") == (0, [], "")
    give_input(monkeypatch, latin.read_bytes())
    assert "standard input" in run("classify", "-")[2]


def test_classify_texts_of_files_and_pairs_of_them(run, models, tmp_path, monkeypatch):
    path = tmp_path / "texts.txt"
    path.write_text("\ufeffa gem\n\na bore\r\n", "utf-8")
    give_input(monkeypatch, "Élan\n \n".encode())
    code, lines, errors = run("classify", "a film", "-", "--file", path, "--json")
    found = [json.loads(line) for line in lines]
    assert (code, errors) == (0, "")
    assert [entry["text"] for entry in found] == ["a film", "Élan", "a gem", "a bore"]
    assert {entry["label"] for entry in found[0]["predictions"]} == set(LABELS)
    assert {*found[0]["predictions"][0]} == {"label", "score"}
    code, lines, _ = run("classify", "a gem", "--pair", "a bore", "--top", "1")
    assert (code, lines[0], len(lines)) == (0, "a gem | a bore", 2)
    code, _, errors = run("classify", " ".join(LINES * 3))
    assert (code, errors.startswith("classify: the text has ")) == (0, True)
    assert (errors.endswith("were cut.\n"), errors.count("\n")) == (True, 1)
    pairs = tmp_path / "model.keras"
    shutil.copy(models["classify"], pairs)
    update_card(pairs, {"pairs": True})
    path.write_text("a gem\ta bore\na gem\n")
    code, (line,), errors = run("classify", "--file", path, "--json", model=pairs)
    assert (code, json.loads(line)["pair"]) == (1, "a bore")
    assert "classifies pairs of texts; give the second text" in errors


def test_model_for_another_program(run, models, tmp_path):
    image = "saved_models/gmlp_n4_32-cifar10"
    (tmp_path / "film.txt").touch()
    for name, text, more, model, code, reason in (
        ("fill_mask", FRANCE, (), models["classify"], 1, "a text classifier"),
        ("fill_mask", FRANCE, (), image, 1, "a model of images"),
        ("classify", FRANCE, (), models["fill_mask"], 1, "a masked language model"),
        ("classify", tmp_path / "film.txt", (), models["classify"], 1, "is a file"),
        ("classify", "a", ("--pair", "b"), image, 1, "--pair"),
    ):
        found, lines, errors = run(name, text, *more, model=model)
        assert (found, lines, errors.count("\n")) == (code, [], 1)
        assert reason in errors


def test_evaluate_prints_a_table_and_json(models, tmp_path, app):
    path, model = tmp_path / "reviews.csv", str(models["classify"])
    lines = (f"gem {n},good\nbore {n},bad\nidea {n},unsure\n" for n in range(5))
    path.write_text("text,label\n" + "".join(lines))
    arguments = [model, model, "--data", path, "--out", tmp_path / "report"]
    code, printed, _ = app("evaluate", *arguments, "--json")
    found = json.loads(printed)
    assert json.loads((tmp_path / "report" / "report.json").read_text()) == found
    code, printed, _ = app("evaluate", *arguments)
    assert (code, "unsure (left out)" in printed) == (0, True)
    assert f"{100 * found['models'][0]['accuracy']:.2f} %" in printed
    assert printed.count(model) == 3  # the title and a row for each model
    given = [models["fill_mask"], "--data", path]  # its lines are plain text
    code, printed, _ = app("evaluate", *given, "--json")
    assert (code, json.loads(printed)["models"][0]["perplexity"] > 1) == (0, True)
    code, _, errors = app("evaluate", *given, "--label", "x")  # which only a table has
    assert (code, "--label" in errors, errors.count("\n")) == (1, True, 1)
