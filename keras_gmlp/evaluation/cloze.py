"""How often a language model fills blanks with a right word.

    python -m keras_gmlp.evaluation.cloze runs/gmlp_nano-text docs/language/cloze.tsv

Each line of the file has a text with one [MASK], a tab, and the right words, separated by commas.
"""

import json
import sys
from pathlib import Path

from keras_gmlp.utils.errors import OneLineParser


def read_cloze(path):
    """Reads texts with their right words."""
    try:
        lines = Path(path).read_text("utf-8").splitlines()
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror}).") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: cannot be read as text in UTF-8 ({error}).") from None
    rows = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        text, tab, words = line.partition("\t")
        right = [word.strip().lower() for word in words.split(",") if word.strip()]
        if not tab or text.count("[MASK]") != 1 or not right:
            raise ValueError(
                f"{path}, line {number}: expected a text with one [MASK], a tab and right words; "
                f"received {line!r}."
            )
        rows.append((text, right))
    if not rows:
        raise ValueError(f"{path}: no texts.")
    return rows


def rank_words(model, rows, top=10, **options):
    """Returns the rank of the first right word for each text, `None` below the `top` words."""
    ranks = []
    for text, right in rows:
        words = [filled["token_str"].lower() for filled in model.fill_mask(text, top, **options)]
        ranks.append(next((n for n, word in enumerate(words, 1) if word in right), None))
    return ranks


def main(arguments=None):
    parser = OneLineParser(prog="python -m keras_gmlp.evaluation.cloze", description=__doc__)
    parser.add_argument("model", metavar="RUN", help="folder of a run, a .keras or a .tflite file")
    parser.add_argument("file", metavar="FILE", help="texts with their right words")
    parser.add_argument("--exclude-context", action="store_true", help="see apps/fill_mask.py")
    parser.add_argument("--json", action="store_true", help="print one object")
    options = parser.parse_args(arguments)
    from keras_gmlp.inference import text as text_inference

    try:
        rows = read_cloze(options.file)
        model = text_inference.load(options.model)
        ranks = rank_words(model, rows, exclude_context=options.exclude_context)
    except ValueError as error:
        print(f"cloze: {error}", file=sys.stderr)
        return 1
    counts = {k: sum(rank is not None and rank <= k for rank in ranks) for k in (1, 3, 5, 10)}
    if options.json:
        print(json.dumps({"texts": len(rows), "ranks": ranks, "right_among_first": counts}))
        return 0
    for (text, right), rank in zip(rows, ranks, strict=True):
        print(f"{rank or '-':>4}  {text}  ({', '.join(right[:3])})")
    shares = ", ".join(f"{count} among the first {k}" for k, count in counts.items())
    print(f"{len(rows)} texts: {shares}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
