"""Whether language models come in the order of "Pay Attention to MLPs", pair by pair."""

import itertools
import re
import statistics

from keras_gmlp.comparison.spread import format_difference

# Perplexities of the paper's table 3 (https://arxiv.org/abs/2105.08050), by the start of our names.
PERPLEXITIES = {
    "bert": 4.26,  # relative positions
    "gmlp": 4.35,  # split gate
    "bert_positions": 4.37,
    "gmlp_multiplicative": 4.53,
    "gmlp_additive": 4.97,
    "gmlp_linear": 5.14,
    "bert_no_attention": 5.64,
}

SIZE = re.compile(r"_(nano|small|medium)$")


def compare_order(lines):
    """Compares each model with the next one in the paper's order."""
    groups = {}
    for line in lines:
        run = line.runs[0]
        others = dict(run.settings)
        preset = others.pop("preset", "")
        family, size = SIZE.sub("", preset), SIZE.search(preset)
        if family in PERPLEXITIES and size and run.measure.key == "test_perplexity":
            key = size[1], repr(sorted(others.items()))
            groups.setdefault(key, {})[family] = line
    pairs = []
    for models in groups.values():
        order = [models[family] for family in PERPLEXITIES if family in models]
        pairs += [_compare(*pair) for pair in itertools.pairwise(order)]
    return pairs


def _compare(better, worse):
    shared = better.scores.keys() & worse.scores.keys()
    found = [worse.scores[seed] - better.scores[seed] for seed in sorted(shared)]
    names = [line.runs[0].settings["preset"] for line in (better, worse)]
    first, second = (PERPLEXITIES[SIZE.sub("", name)] for name in names)
    return {
        "better": names[0],
        "worse": names[1],
        "paper": round(second - first, 2),
        "differences": found,
        "holds": _decide(found),
    }


def _decide(found):
    """Returns whether the mean of differences is above 0; `None` if it is not clear."""
    if not found:
        return None
    mean = statistics.mean(found)
    error = statistics.stdev(found) / len(found) ** 0.5 if len(found) > 1 else 0.0
    return None if abs(mean) <= 2 * error else mean > 0


def order_table(pairs):
    """Returns the lines of a Markdown table of what `compare_order` returns; none without pairs."""
    if not pairs:
        return []
    answers = {True: "yes", False: "no", None: "open"}
    rows = [
        f"| `{pair['better']}` before `{pair['worse']}` | {pair['paper']:+.2f} | "
        f"{format_difference(pair['differences'], 2)} | {len(pair['differences'])} | "
        f"{answers[pair['holds']]} |"
        for pair in pairs
    ]
    return [
        "",
        "The order of the paper's table 3, by perplexity:",
        "",
        "| pair | difference in the paper | here | seeds | holds |",
        "|---|---:|---:|---:|---|",
        *rows,
        "",
        "Open: within two standard errors. One seed has none, so its yes or no is a sign alone.",
    ]
