"""The table and the charts of a plan: `python -m keras_gmlp.comparison.plan_report PLAN.json`.

Reads the folders of the runs that `keras_gmlp.runs.queue` trained from the plan and writes
results.csv, results.md and, as far as the runs allow, two charts: capacity.png, the score of each
family over its number of parameters, and epochs.png. Runs that differ in the seed alone count as
one line. Each line is compared, seed by seed, with the earlier one whose settings are the nearest,
so that a plan of single changes becomes a table of what each change gives. For language models, a
second table says pair by pair whether the order of the gMLP paper holds. Runs that are not complete
are named below.
"""

import argparse
import csv
import statistics
import sys
from pathlib import Path

from keras_gmlp.comparison import charts
from keras_gmlp.comparison.paper_order import compare_order, order_table
from keras_gmlp.comparison.planned_runs import group, read_runs
from keras_gmlp.comparison.spread import format_difference, format_mean, note_single
from keras_gmlp.comparison.texts import ACCURACY
from keras_gmlp.utils import plotting
from keras_gmlp.utils.errors import first_line
from keras_gmlp.utils.files import atomic_write

COLUMNS = ("name", "seed", "family", "parameters", "measure", "score", "epochs", "seconds", "state")

GROWTH = 1.5  # a family has several sizes if the largest is that many times the smallest


def to_markdown(lines, command):
    """Returns the table as Markdown, then the runs that are not complete."""
    done = [line for line in lines if line.complete]
    circumstances = dict.fromkeys(run.circumstances for line in done for run in line.complete)
    text = [*circumstances, "", f"Made by `{command}`.", ""]
    text += [
        "| run | parameters | epochs | seeds | measure | score | next to | what differs "
        "| difference |",
        "|---|---:|---:|---:|---|---|---|---|---|",
    ]
    for line in done:
        base = line.base if line.differences() else None
        cells = (
            f"`{line.name}`",
            f"{line.parameters:,}",
            f"{line.complete[0].metrics['epochs']}",
            f"{len(line.scores)}",
            line.runs[0].measure.name,
            _format_score(line),
            f"`{base.name}`" if base else "",
            line.changes() if base else "",
            format_difference(line.differences(), 2),
        )
        text.append(f"| {' | '.join(cells)} |")
    text += [
        "",
        "A score is the mean over the seeds, with the standard deviation; a difference is taken "
        "seed by seed, with the standard error of its mean. One seed says little about differences "
        "below a point.",
    ]
    text += order_table(compare_order(done))
    rest = [run for line in lines for run in line.runs if not run.metrics]
    if rest:
        text += ["", "Not in the table:", ""]
        text += [f"- `{run.name}`, seed {run.seed}: {run.state}" for run in rest]
    return "\n".join(text) + "\n"


def _format_score(line):
    """Returns the mean score with its spread, and how many runs predict one class alone."""
    single = sum(run.metrics.get("test_predicted_classes") == 1 for run in line.complete)
    note = note_single(single, len(line.complete))
    return format_mean(list(line.scores.values()), 2) + (f" ({note})" if note else "")


def draw_capacity(lines, path):
    """Draws the score of each family over its parameters, gMLP's own figure."""
    families = {}
    for line in lines:
        if line.complete and line.runs[0].family:
            families.setdefault(line.runs[0].family, []).append(line)
    for of in families.values():
        of.sort(key=lambda line: line.parameters)
    if not any(of[-1].parameters >= GROWTH * of[0].parameters for of in families.values()):
        return None
    from matplotlib.ticker import LogLocator

    figure, (axes,) = charts.make_figure()
    ends = []
    for name, colour in charts.choose_colours(families).items():
        sizes = [line.parameters / 1e6 for line in families[name]]
        scores = [list(line.scores.values()) for line in families[name]]
        means = [statistics.mean(values) for values in scores]
        spreads = [statistics.stdev(values) if len(values) > 1 else 0 for values in scores]
        axes.errorbar(sizes, means, yerr=spreads, color=colour, marker="o", capsize=2)
        ends.append((sizes[-1], means[-1], name, colour))
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.minorticks_off()
    measure = next(iter(families.values()))[0].runs[0].measure
    axes.set(xlabel="parameters (millions)", ylabel=f"test {measure.name}")
    charts.label_ends(axes, ends)
    return plotting.save(figure, path)


def draw_epochs(lines, path):
    """Draws the test accuracy over epochs; returns the path, or `None` without image models."""
    runs = [run for line in lines for run in line.complete if run.epochs]
    runs = [run for run in runs if run.family and run.measure == ACCURACY]
    if not runs:
        return None
    colours = charts.choose_colours(dict.fromkeys(run.name for run in runs))
    return charts.draw_epochs(runs, colours, path)


def write_report(plan, directory, command):
    """Writes results.csv, results.md and the charts of a plan."""
    runs = read_runs(plan)
    if not any(run.metrics for run in runs):
        raise ValueError(
            f"{plan}: none of its {len(runs)} runs is complete. Train them with "
            f"`python -m keras_gmlp.runs.queue {plan}`."
        )
    lines, directory = group(runs), Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    paths = [directory / "results.csv", directory / "results.md"]
    with atomic_write(paths[0]) as temporary, temporary.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(run.row() for run in runs)
    with atomic_write(paths[1]) as temporary:
        temporary.write_text(to_markdown(lines, command), "utf-8")
    for draw, name in ((draw_capacity, "capacity.png"), (draw_epochs, "epochs.png")):
        (directory / name).unlink(missing_ok=True)
        if drawn := draw(lines, directory / name):
            paths.append(drawn)
    return paths


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m keras_gmlp.comparison.plan_report",
        description=__doc__.partition("\n\n")[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("plan", metavar="PLAN.json", help="for example docs/plans/capacity.json")
    parser.add_argument("--out", metavar="DIR", help="default: runs/PLAN-report")
    options = parser.parse_args(arguments)
    out = options.out or f"runs/{Path(options.plan).stem}-report"
    command = f"python -m keras_gmlp.comparison.plan_report {options.plan} --out {out}"
    try:
        paths = write_report(options.plan, out, command)
    except ValueError as error:
        print(f"plan_report: {first_line(error)}", file=sys.stderr)
        return 1
    for path in paths:
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
