"""The table and the charts of a plan: `python -m keras_gmlp.comparison.plan_report PLAN.json`.

Reads the folders of the runs that `keras_gmlp.runs.queue` trained from the plan and writes
results.csv, results.md and, as far as the runs allow, two charts: capacity.png, the score of each
family over its number of parameters, and epochs.png. Runs that differ in the seed alone count as
one line. Each line is compared, seed by seed, with the earlier one whose settings are the nearest,
so that a plan of single changes becomes a table of what each change gives. For language models, a
second table says pair by pair whether the order of the gMLP paper holds. Runs that are not complete
are named below.
"""

import itertools
import re
import statistics
import sys
from pathlib import Path

from keras_gmlp.comparison import charts
from keras_gmlp.comparison.plan import (
    ACCURACY,
    Plan,
    format_difference,
    format_mean,
    group_by,
    list_left_out,
    mean_and_spread,
    note_single,
    write_tables,
)
from keras_gmlp.models.presets import PRESETS
from keras_gmlp.runs.settings import KINDS
from keras_gmlp.utils.errors import OneLineParser, describe_failure, shortened
from keras_gmlp.utils.markdown import make_table

COLUMNS = ("name", "seed", "family", "parameters", "measure", "score", "epochs", "seconds", "state")
GROWTH = 1.5  # a family has several sizes if the largest is that many times the smallest
DISTANT = 100  # another preset is further away than any number of changes to one

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
# From table 6, of larger models that trained longer: perplexities 3.95 and 4.28.
APART = "amlp", "gmlp", 0.33
SAME_SIZE = 0.1  # share by which the parameters of two models of a pair may differ


class Line:
    """Runs that differ in the seed alone, and the earlier line that is the nearest, or `None`."""

    def __init__(self, runs, settings, earlier):
        self.runs, self.settings = runs, settings
        self.complete = [run for run in runs if run.complete]
        self.name = re.sub(r"-(s|seed)?\d+$", "", runs[0].name)
        self.measure = runs[0].measure
        self.overrides = runs[0].settings.set_model
        build = PRESETS.get(settings.get("model"), (None,))[0]
        self.family = build.__name__ if build else ""
        self.scores = {run.seed: run.score for run in self.complete}
        self.metrics = self.complete[0].metrics if self.complete else {}
        alike = [x for x in earlier if x.complete and x.subject == self.subject]
        self.base = min(alike, key=self._distance, default=None)

    @property
    def subject(self):
        """What is measured, and on which data."""
        return self.measure, *(self.settings.get(kind) for kind in KINDS)

    @property
    def parameters(self):
        return self.metrics["parameters"]

    def _distance(self, other):
        mine, others = self.settings, other.settings
        different = {key for key in mine.keys() | others.keys() if mine.get(key) != others.get(key)}
        return len(different) + DISTANT * ("model" in different)

    def changes(self):
        """Returns the settings that differ from the base, a text."""
        mine, others = self.settings, self.base.settings
        texts = [f"{key}={mine[key]}" for key in mine if mine[key] != others.get(key)]
        return ", ".join([*texts, *(f"{key} as usual" for key in others if key not in mine)])

    def minus(self, other):
        """Returns the score minus the other line's for each seed that both have, a list."""
        return [score - other.scores[n] for n, score in self.scores.items() if n in other.scores]


def group(runs):
    """Groups runs that differ in the seed alone; returns a list of `Line`."""
    lines, settings = [], {run: _settings(run.settings) for run in runs}
    for each in settings.values():
        each.pop("seed", None)
    for members in group_by(runs, lambda run: repr(sorted(settings[run].items()))).values():
        lines.append(Line(members, settings[members[0]], list(lines)))
    return lines


def _settings(run):
    """Returns what a run of a plan sets, a flat dict without the folder."""
    settings = run.to_dict()
    own = {**settings.pop("set", {}), **settings.pop("set_model", {})}
    return {name: value for name, value in {**settings, **own}.items() if name != "out"}


def to_row(run, line):
    """Returns the run's row of results.csv, a dict."""
    row = {"name": line.name, "seed": run.seed, "family": line.family, "state": _state(run)}
    if metrics := run.metrics:
        row |= {name: metrics.get(name, "") for name in ("parameters", "epochs", "seconds")}
        row |= {"measure": line.measure.name, "score": round(run.score, 4)}
    return row


def _state(run):
    return run.status if run.complete or run.recorded else "not begun"


def to_markdown(lines, command):
    """Returns the table as Markdown, then the runs that are not complete."""
    done = [line for line in lines if line.complete]
    form = "{data}, recipe `{recipe}`, {precision}, Keras on {backend}, {processor} ({versions})."
    complete = [run for line in done for run in line.complete if run.recorded]
    circumstances = (form.format(**{**run.recorded, **run.conditions()}) for run in complete)
    text = [*dict.fromkeys(circumstances), "", f"Made by `{command}`.", ""]
    rows = []
    for line in done:
        score = format_mean(list(line.scores.values()), 2)
        differences = line.minus(line.base) if line.base else []
        if single := note_single(sum(run.one_class for run in line.complete), len(line.complete)):
            score += f" ({single})"
        cells = [f"`{line.name}`", f"{line.parameters:,}", f"{line.metrics['epochs']}"]
        cells += [f"{len(line.scores)}", line.measure.name, score]
        cells += [f"`{line.base.name}`", line.changes()] if differences else ["", ""]
        rows.append([*cells, format_difference(differences, 2)])
    head = ("run", "parameters", "epochs", "seeds", "measure", "score")
    head += ("next to", "what differs", "difference")
    text += [
        *make_table(head, rows, numbers=(1, 2, 3)),
        "",
        "A score is the mean over the seeds, with the standard deviation; a difference is taken "
        "seed by seed, with the standard error of its mean. One seed says little about differences "
        "below a point.",
        *order_table(done),
    ]
    rest = [(line, run) for line in lines for run in line.runs if not run.complete]
    left_out = [f"- `{line.name}`, seed {run.seed}: {_state(run)}" for line, run in rest]
    return "\n".join([*text, *list_left_out(left_out)]) + "\n"


def order_table(lines):
    """Returns the lines of a table of neighbours in the paper's order; none without such pairs."""
    groups = {}
    for line in (line for line in lines if line.measure.key == "test_perplexity"):
        family, _, size = line.runs[0].preset.rpartition("_")
        sizes = {"model", *line.overrides}
        others = {key: value for key, value in line.settings.items() if key not in sizes}
        models = groups.setdefault((size, repr(sorted(others.items()))), {})
        models.setdefault(family, []).append(line)
    rows = []
    for models in groups.values():
        order = [family for family in PERPLEXITIES if family in models]
        steps = [(a, b, PERPLEXITIES[b] - PERPLEXITIES[a]) for a, b in itertools.pairwise(order)]
        for better, worse, difference in [APART, *steps]:
            for first in models.get(better, ()):
                if second := _find_equal(first, models.get(worse, ())):
                    names = f"`{first.runs[0].preset}` before `{second.runs[0].preset}`"
                    rows.append([names, f"{difference:+.2f}", *_judge(second.minus(first))])
    if not rows:
        return []
    head = ("pair", "difference in the paper", "here", "seeds", "holds")
    return [
        *("", "The order of the paper's tables 3 and 6, by perplexity:", ""),
        *make_table(head, rows, numbers=(1, 2, 3)),
        "",
        "Open: within two standard errors, or one seed only, which has no error.",
    ]


def _find_equal(line, others):
    """Returns the line with the same overrides, or else about as many parameters, or `None`."""
    for other in others:
        if other.overrides == line.overrides:
            return other
    near = [x for x in others if abs(x.parameters / line.parameters - 1) <= SAME_SIZE]
    return min(near, key=lambda x: abs(x.parameters - line.parameters), default=None)


def _judge(found):
    """Returns the mean of differences, their number, and whether it is above 0, as cells."""
    holds = "open"  # one seed has no error to compare with
    if len(found) > 1:
        mean, error = statistics.mean(found), statistics.stdev(found) / len(found) ** 0.5
        holds = "open" if abs(mean) <= 2 * error else "yes" if mean > 0 else "no"
    return format_difference(found, 2), str(len(found)), holds


def draw_capacity(lines, path):
    """Draws the score of each family over its parameters, gMLP's own figure."""
    families = group_by([x for x in lines if x.complete and x.family], lambda line: line.family)
    for of in families.values():
        of.sort(key=lambda line: line.parameters)
    if not any(of[-1].parameters >= GROWTH * of[0].parameters for of in families.values()):
        return None
    from matplotlib.ticker import LogLocator

    series = {}
    for name, of in families.items():
        scores = [list(line.scores.values()) for line in of]
        sizes = [line.parameters / 1e6 for line in of]
        series[name] = [(x, *mean_and_spread(y)) for x, y in zip(sizes, scores, strict=True)]
    ylabel = f"test {next(iter(families.values()))[0].measure.name}"
    axes = {"xlabel": "parameters (millions)", "ylabel": ylabel}
    colours, ticks = charts.choose_colours(families), LogLocator(subs=(1, 2, 5))
    return charts.draw_series(series, colours, path, ticks, **axes)


def draw_epochs(lines, path):
    """Draws the test accuracy over epochs; returns the path, or `None` without image models.

    Runs that held out validation images are left out: their histories have no test accuracy.
    """
    named = {}
    for line in lines:
        tested = "validation" not in line.settings
        runs = [run for run in line.complete if tested and run.history()]
        if runs and line.family and line.measure == ACCURACY:
            named.setdefault(line.name, []).extend(runs)
    return charts.draw_epochs(named, charts.choose_colours(named), path) if named else None


def read_trained(path):
    """Returns the runs of a plan; raises a `ValueError` if none is complete or one differs."""
    plan = Plan.read(path)
    plan.check_recorded()
    if not any(run.complete for run in plan.runs):
        raise ValueError(
            f"{path}: none of its {len(plan.runs)} runs is complete. Train them with "
            f"`python -m keras_gmlp.runs.queue {path}`."
        )
    return plan.runs


def write_report(runs, directory, command):
    """Writes results.csv, results.md and the charts of a plan's runs."""
    lines, directory = group(runs), Path(directory)
    of_run = {run: line for line in lines for run in line.runs}
    rows = [to_row(run, of_run[run]) for run in runs]
    paths = write_tables(directory, COLUMNS, rows, to_markdown(lines, command))
    for draw, name in ((draw_capacity, "capacity.png"), (draw_epochs, "epochs.png")):
        (directory / name).unlink(missing_ok=True)
        if drawn := draw(lines, directory / name):
            paths.append(drawn)
    return paths


def main(arguments=None):
    parser = OneLineParser(
        prog="python -m keras_gmlp.comparison.plan_report",
        description=__doc__.partition("\n\n")[2],
    )
    parser.add_argument("plan", metavar="PLAN.json", help="for example docs/plans/families.json")
    parser.add_argument("--out", metavar="DIR", help="default: runs/PLAN-report")
    options = parser.parse_args(arguments)
    out = options.out or f"runs/{Path(options.plan).stem}-report"
    command = f"python -m keras_gmlp.comparison.plan_report {options.plan} --out {out}"
    try:
        runs = read_trained(options.plan)
        print(*write_report(runs, out, command), sep="\n")
    except (ValueError, OSError) as error:
        print(f"plan_report: {describe_failure(error)}", file=sys.stderr)
        return 1
    if missing := [run.name for run in runs if not run.complete]:
        text = f"not complete, and not in the table: {', '.join(missing)}"
        print(f"plan_report: {shortened(text, 200)}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
