"""The page's tab for texts gives Python's tokens and answers, and shows them."""

import random
import re
import shutil
import unicodedata

import pytest
from load_app import ROOT
from small_text import LABELS, LENGTH, LINES, small_text_model, small_tokenizer
from web_page import call, serve_models

from keras_gmlp.data.text.tokenizer import Tokenizer
from keras_gmlp.export.writing import export
from keras_gmlp.inference.card_update import update_card
from keras_gmlp.utils.card import write_text_card
from keras_gmlp.weights.loading import load

LONG = " ".join(LINES * 4)  # more tokens than a model takes
TEXTS = [*LINES, "a", "The river, the RIVER; and Rome!", "Ωmega 中文 \u200b x", LONG]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model of each task, one of pairs, and two broken ones, of which one has no text."""
    folder, tokenizer = tmp_path_factory.mktemp("models"), small_tokenizer()
    own = {
        "masks": ("masked_lm", (), None),
        "classes": ("text_classification", LABELS, {"pairs": False, "test_accuracy": 0.75}),
    }
    for name, (task, labels, card) in own.items():
        model = small_text_model(task, tokenizer)
        formats = ["tflite_float32"]
        texts = {"tokenizer": tokenizer, "length": LENGTH}
        paths = export(model, folder / name, formats, labels, card, **texts)
        paths["tflite_float32"].rename(folder / name / "model.tflite")
    shutil.copytree(folder / "classes", folder / "several")
    task = {"task": "multi_label_texts", "thresholds": [0.5, 0.5]}
    update_card(folder / "several" / "model.tflite", task)
    shutil.copytree(folder / "classes", folder / "pairs")
    update_card(folder / "pairs" / "model.tflite", {"pairs": True})
    whole = (folder / "masks" / "model.tflite").read_bytes()
    card = re.search(rb"PK\x03\x04.{26}labels\.txt", whole, re.DOTALL)
    (folder / "wrong_task.tflite").write_bytes(whole[: card.start()])
    write_text_card(folder / "wrong_task.tflite", "text_classification", tokenizer)
    (folder / "empty.tflite").touch()  # for the tab for pictures
    return folder


@pytest.fixture
def page(opened):
    opened.set_viewport_size({"width": 1280, "height": 720})
    opened.click("#tab-texts")
    return opened


def odd_lines(count, words):
    """Returns lines of words, special tokens and letters of many scripts.

    Only code points that all versions of Unicode agree on: the tables of the package `tokenizers`
    are from 2015.
    """
    generator = random.Random(0)
    odd = ["[MASK]", "[CLS]", "[mask]", "Σ", "ΑΣ", "é", "e\u0301", "İ", "ß", "\ufb01", "\u200b"]
    odd += ["\u00ad", "\u2028", "\u0085", "\x0b", "中文", "\U00020000a", "한국", "\ufffd", "\0"]
    odd += ["\t", "😀", "a" * 100, "a" * 101]
    ranges = [(32, 0x250), (0x300, 0x3000), (0x3000, 0xD800), (0xE000, 0x11000), (0x1D000, 0x1D800)]

    def letters():
        points = [chr(generator.randrange(*generator.choice(ranges))) for _ in range(5)]
        old = unicodedata.ucd_3_2_0.category
        known = [c for c in points if old(c) != "Cn" and old(c) == unicodedata.category(c)]
        return "".join(known)

    def part():
        kind = generator.random()
        some = generator.choice(words) if kind < 0.6 else generator.choice(odd)
        return (letters() if kind > 0.75 else some) + generator.choice(["", " ", "  ", "-"])

    return ["".join(part() for _ in range(generator.randint(1, 12))) for _ in range(count)]


@pytest.mark.parametrize("options", [{}, {"strip_accents": True}, {"lowercase": False}])
def test_tokens_and_places_are_pythons(page, tmp_path, options):
    text, strip_accents = (ROOT / "docs/guides/text.md").read_text(), "strip_accents" in options
    tokenizer = Tokenizer.train([text], vocabulary_size=500, **options)
    lines = odd_lines(700, [token for token in tokenizer.tokens if not token.startswith("[")])
    lines.append("\u0e01" * 250 + "[SEP] [MASK][PAD]")
    if strip_accents:  # as published ones: a word of more than 100 letters is unknown
        (tmp_path / "vocab.txt").write_text("\n".join(tokenizer.tokens))
        tokenizer = Tokenizer.load(tmp_path / "vocab.txt")
    found = call(
        page,
        """const tokenizer = new tokens.Tokenizer(given[0]);
        return given[1].map((line) =>
          tokenizer.encode(line).map(({ id, start, stop }) => [
            id, [...line.slice(0, start)].length, [...line.slice(0, stop)].length,
          ]));""",
        [tokenizer.text, lines],
    )
    for line, tokens in zip(lines, found, strict=True):
        expected = tokenizer.encode(line)
        assert [token[0] for token in tokens] == expected.ids[1:-1], line
        # Where it strips accents, Python reorders combining marks before it counts.
        ordered = "".join(unicodedata.normalize("NFD", letter) for letter in line)
        if not strip_accents or ordered == unicodedata.normalize("NFD", line):
            assert [token[1:] for token in tokens] == [*map(list, expected.offsets[1:-1])], line


def test_classes_are_pythons(page, folder):
    script = "return (await openText(given[0])).classify(given[1], given[2]);"
    single = [(text, None) for text in TEXTS]
    for name, pairs in (("classes", single), ("several", single), ("pairs", PAIRS)):
        model = load(folder / name, warn=lambda _: None)
        for text, pair in pairs:
            found = call(page, script, [name, text, *([] if pair is None else [pair])])
            expected = model.classify(text, pair)
            assert [e["label"] for e in found["ranked"]] == [e["label"] for e in expected]
            shares = [e["probability"] for e in found["ranked"]]
            assert shares == pytest.approx([e["score"] for e in expected], abs=1e-4)
            applying = [e.get("applies") for e in found["ranked"]]
            assert applying == [e.get("applies") for e in expected]
            assert ("was cut" in found["note"]) == (LONG in (text, pair))


PAIRS = [(LINES[0], LINES[1]), ("a", LONG), (LONG, "a"), (LONG, LONG), (LINES[2], "a gem")]


def test_words_for_masks_are_pythons(page, folder):
    model = load(folder / "masks", warn=lambda _: None)
    script = "return (await openText('masks')).fillMask(given, 5);"
    texts = ["Paris is the [MASK] of France.", "[MASK] [MASK]", " ".join(["[MASK]"] * 11) + LONG]
    for text in texts:
        expected = model.fill_mask(text)
        expected = expected if isinstance(expected[0], list) else [expected]
        found = call(page, script, text)
        assert len(found["masks"]) == len(expected)
        for mask, words in zip(found["masks"], expected, strict=True):
            assert text[mask["start"] : mask["stop"]] == "[MASK]"
            assert [e["word"] for e in mask["words"]] == [e["token_str"] for e in words]
            shares = [e["probability"] for e in mask["words"]]
            assert shares == pytest.approx([e["score"] for e in words], abs=1e-4)
    assert "was cut" in found["note"]


def choose(page, name):
    """Chooses a model and shows its example, because the fields keep what an earlier test wrote."""
    page.select_option("#text-model", name)
    page.locator("#text-answer:not(:empty), #text-results ol").first.wait_for()
    page.click("#example")
    page.locator("#text-results ol").first.wait_for()


def read_bars(page):
    names = page.locator("#text-results .label").all_inner_texts()
    shares = page.locator("#text-results .percent").all_inner_texts()
    return dict(zip(names, shares, strict=True))


def test_answers_while_typing(page, folder):
    choose(page, "classes")
    assert "Classes: bad, good." in page.inner_text("#text-details")
    page.fill("#text", LINES[1])
    (best, other) = load(folder / "classes").classify(LINES[1])
    page.get_by_text(f"{best['label']}, {100 * best['score']:.1f} %").wait_for()
    assert list(read_bars(page)) == [best["label"], other["label"]]
    page.wait_for_timeout(500)  # the bars grow
    bar = page.locator("#text-results .bar").first
    share = bar.locator("span").bounding_box()["width"] / bar.bounding_box()["width"]
    assert share == pytest.approx(best["score"], abs=0.01)
    choose(page, "several")
    page.fill("#text", LINES[1])
    found = [row for row in load(folder / "several").classify(LINES[1]) if row["applies"]]
    shown = "; ".join(f"{row['label']}, {100 * row['score']:.1f} %" for row in found)
    page.get_by_text(shown or "No label applies", exact=True).wait_for()
    page.fill("#text", " ")
    page.get_by_text("Write a text.").wait_for()
    assert not read_bars(page)


def test_word_is_written_into_its_mask(page, folder):
    choose(page, "masks")
    page.fill("#text", "Paris is the")
    page.get_by_text("Write [MASK] in the place of a word").wait_for()
    page.fill("#text", "Paris [MASK] the [MASK] of France.")
    page.get_by_text("[MASK] 2").wait_for()
    assert page.locator(".word").count() == 10
    word = page.locator(".word").nth(0).inner_text()
    page.locator(".word").nth(0).click()
    page.get_by_text("[MASK] 2").wait_for(state="detached")
    written = page.input_value("#text")
    assert written.replace(" ", "") == f"Paris{word.removeprefix('##')}the[MASK]ofFrance."
    # Two clicks before the next answer: the second would write at a place that has moved.
    page.fill("#text", "Paris [MASK] the [MASK] of France.")
    page.get_by_text("[MASK] 2").wait_for()
    words = "document.querySelectorAll('.word')"
    page.evaluate(f"{words}[0].click(); {words}[5].click()")
    assert page.input_value("#text") == written
    page.fill("#text", "A cat in ")
    page.click("#insert-mask")
    assert page.input_value("#text") == "A cat in [MASK]"
    page.locator(".word").first.wait_for()


def test_only_text_models_open_the_tab_for_texts(browser, folder, tmp_path):
    shutil.copytree(folder / "classes", tmp_path / "classes")
    with serve_models(tmp_path) as port, browser.new_context() as context:
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{port}/")
        page.locator("#text-results ol").wait_for()
        assert not page.is_visible("#tabs")
        assert not page.is_visible("#pictures")
        page.evaluate("location.hash = 'tab=pictures'")
        assert not page.is_visible("#pictures")
        assert page.inner_text("#title") == "What does the text say?"
        assert (
            page.locator("#text-model option").all_inner_texts()[0].startswith("classes · 75.0 %")
        )


def test_broken_model(page):
    page.select_option("#text-model", "wrong_task")
    page.get_by_text("expected the inputs token_ids; received mask_positions, token_ids").wait_for()
    choose(page, "classes")
    assert page.inner_text("#text-problem") == ""
