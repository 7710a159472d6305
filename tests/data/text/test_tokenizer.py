"""Token ids and offsets, compared with those of BERT's tokenizer."""

import itertools
import json
import random
import unicodedata
import warnings

import numpy as np
import pytest
from refused import refused

from keras_gmlp.data.text.tokenizer import SPECIAL_TOKENS, Tokenizer, count_cut

LINES = [
    "The quick brown fox, born in 1987, doesn't jump: it RUNS!",
    "naïve café Ångström İstanbul Straße ﬁne Ελλάδα Москва e\u0301le\u0300ve",
    "東京 is 日本の首都です。北京市 한국어 ภาษาไทย עברית العربية हिन्दी",
    "emoji 🙂👩‍👩‍👧 flags 🇫🇷 and ☂️ mixed🙂words",
    "controls\x00\x01\x7f\u200b\u200e\ufeff tabs\tand\u00a0spaces\u2028\u3000end",
    "x² + y³ ≠ ½ — “quotes” \u2018single\u2019 …dots… $5.00 100% a_b c/d [x] {y} <z>",
    "supercalifragilisticexpialidocious " + "a" * 101 + " pneumonoultramicroscopic",
    "a [MASK] and a [mask] and[MASK]",
    "",
    "   \t  ",
    "\ufffd broken \ufffd",
]


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory):
    """Path of a small vocabulary with rare letters."""
    path = tmp_path_factory.mktemp("vocabulary") / "vocab.txt"
    tokenizer = Tokenizer.train([line for line in LINES if line] * 2, 1200)
    # In another order, and with another token than ours at 1 and the last places.
    names = [*tokenizer.tokens[5:9], *SPECIAL_TOKENS[1:], *tokenizer.tokens[9:]]
    path.write_text("\n".join(["[PAD]", *names]) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def small():
    return Tokenizer.train(["the cat sat on the mat, and the other cat sat on the hat"] * 3, 128)


def random_lines(count):
    """Lines of characters from many scripts."""
    draw = random.Random(0)
    ranges = [(32, 127), (0, 0x250), (0x300, 0x600), (0x4E00, 0x4E80), (0x2000, 0x2400)]
    ranges += [(0x1F300, 0x1F680), (0x3040, 0x3100), (0xFF00, 0xFFF0), (0x0, 0x3000)]
    letters = [chr(n) for start, stop in ranges for n in range(start, stop)]
    # Newer versions of Unicode know more letters, and the references' versions differ.
    known = [c for c in letters if unicodedata.category(c) != "Cn"]
    return ["".join(draw.choices(known, k=draw.randint(1, 60))) for _ in range(count)]


@pytest.fixture(scope="module")
def reference(vocabulary):
    """BertTokenizer of transformers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # from the import
        from transformers import BertTokenizer

        return BertTokenizer(str(vocabulary))


def test_ids_are_those_of_bert(vocabulary, reference):
    tokenizer = Tokenizer.from_vocabulary(vocabulary)
    assert tokenizer.size == len(reference)
    assert tokenizer.special_ids == tuple(reference.convert_tokens_to_ids(SPECIAL_TOKENS))
    lines = LINES + random_lines(100)
    for line, encoding in zip(lines, tokenizer.encode_batch(lines), strict=True):
        assert encoding.ids == reference(line)["input_ids"], line
        text = reference.decode(encoding.ids, skip_special_tokens=True)
        assert tokenizer.decode(encoding.ids) == text


def test_pairs_and_offsets_are_those_of_bert(vocabulary, reference):
    tokenizer = Tokenizer.from_vocabulary(vocabulary)
    pairs = (LINES[0], LINES[1]), (LINES[1], "a"), ("a", LINES[0]), (LINES[2], LINES[2])
    for length, (a, b) in itertools.product((5, 12, 16, 40), pairs):
        encoding = tokenizer.encode(a, b, length)
        expected = reference(
            a, b, max_length=length, truncation=True, padding="max_length",
            return_offsets_mapping=True,
        )  # fmt: skip
        assert encoding.ids == expected["input_ids"]
        assert encoding.offsets == expected["offset_mapping"]


def test_offsets_are_places_in_the_original(small):
    text = "THE  cát\tsat 🙂 [MASK] hat"
    encoding = small.encode(text, length=16)
    found = [text[start:stop] for start, stop in encoding.offsets]
    assert found[:1] + found[-1:] == ["", ""]
    names = [small.tokens[i] for i in encoding.ids]
    assert names[found.index("[MASK]")] == "[MASK]"
    assert "".join(found).replace(" ", "").startswith("THEcátsat🙂[MASK]hat")
    pair = "the cat", "a hat"
    whole = len(small.encode(*pair).ids)
    assert [count_cut(small, [pair], length) for length in (6, whole, 24)] == [1, 0, 0]


def test_training_repeats_itself(tmp_path):
    text = ["alpha beta gamma delta 東京 Épsilon", "beta, gamma! (zeta) 12 34"] * 5
    (tmp_path / "a.txt").write_text("\n".join(text), encoding="utf-8")
    one, other = (Tokenizer.train(source, 200) for source in (text, tmp_path / "a.txt"))
    assert other.hash == one.hash
    assert one.special_ids == (0, 1, 2, 3, 4)
    assert one.tokens[:5] == list(SPECIAL_TOKENS)
    assert one.size == len(one.tokens) <= 200
    cased = Tokenizer.train(text, 200, lowercase=False)
    assert cased.decode(cased.encode("Épsilon").ids) == "Épsilon"


def test_file_holds_the_tokenizer(small, tmp_path):
    path = tmp_path / "tokenizer.json"
    small.save(path)
    assert Tokenizer.load(path).hash == small.hash
    # Other programs store settings for truncation, which do not apply here.
    content = json.loads(small.text)
    content["truncation"] = {
        "direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0
    }  # fmt: skip
    path.write_text(json.dumps(content))
    cut = Tokenizer.load(path)
    assert cut.hash != small.hash
    assert cut.encode("a cat").ids == small.encode("a cat").ids
    cut.save(tmp_path / "copy.json")
    assert (tmp_path / "copy.json").read_bytes() == path.read_bytes()


def test_plain_text_has_no_special_tokens(small):
    (ids,) = small.encode_plain(["[MASK] [SEP] [PAD]"])
    assert not {0, 2, 3, 4} & set(ids)
    ids = small.encode("[CLS] the [SEP][PAD] [MASK]", "the").ids
    assert [i for i in ids if i in (0, 2, 3, 4)] == [2, 4, 3, 3]


def test_letters_of_a_large_script_and_long_words_are_known():
    draw, kanji = random.Random(0), [chr(0x4E00 + number) for number in range(400)]
    thai = [chr(number) for number in range(0x0E01, 0x0E3B)]  # has no spaces
    lines = ["".join(draw.choices(kanji, k=30) + draw.choices(thai, k=110)) for _ in range(30)]
    tokenizer = Tokenizer.train(lines, 2048)
    ids = np.concatenate([tokenizer.encode(line).ids for line in lines])
    assert (ids == tokenizer.unk_id).mean() < 0.01


def change(small, path, value):
    """Returns the text of a tokenizer with another value at a path."""
    content = part = json.loads(small.text)
    *places, last = path.split(".")
    for place in places:
        part = part[int(place)] if isinstance(part, list) else part[place]
    part[last] = value
    return json.dumps(content)


def test_only_berts_wordpiece_is_accepted(small):
    for path, value in (
        ("model.type", "BPE"),
        ("model.max_input_chars_per_word", 10**9),
        ("model.vocab.new", 4_000_000_000),
        ("normalizer", {"type": "Replace", "pattern": {"Regex": "(a"}}),
        ("pre_tokenizer", {"type": "Sequence", "pretokenizers": []}),
        ("decoder", None),
    ):
        with refused("BERT's WordPiece", "theirs.json"):
            Tokenizer(change(small, path, value), "theirs.json")
    older = json.loads(small.text)
    del older["model"]["type"]
    assert Tokenizer(json.dumps(older)).tokens == small.tokens


def test_wrong_files_and_arguments_are_one_line(small, tmp_path):
    for name, content, match in (
        ("tokenizer.json", "[" * 100_000, "not a tokenizer.json"),
        ("vocab.txt", "a\nb", "PAD"),
        ("vocab.txt", "\n".join([*SPECIAL_TOKENS, *"aba"]), "the ids of"),
    ):
        (tmp_path / name).write_text(content)
        with refused(match, tmp_path / name):
            Tokenizer.load(tmp_path / name)
    for call, arguments, match in (
        (Tokenizer.train, (["text"], 10), "vocabulary_size"),
        (Tokenizer.train, (["", " "], 128), "empty"),
        (small.encode, ("a", "b", 4), "at least 5"),
        (small.encode, ("so \ud83d",), "UTF-8"),
    ):
        with refused(match):
            call(*arguments)
