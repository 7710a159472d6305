"""Checks pictures in a folder or a table: unreadable files, duplicates, classes, wrong labels."""

import functools
import os
from pathlib import Path

from keras_gmlp.programs.shared import cli
from keras_gmlp.utils.errors import printable
from keras_gmlp.utils.files import require_output

SHOWN = 5  # findings of a kind that are printed
FILES = ("findings.csv", "findings.png")

USAGE = """\
data PATH  a folder or a table of images, as for --data in training
--out DIR  output folder; default: runs/check-NAME
--min-images N:int=10  report classes with fewer pictures
--model RUN  folder of a run, or the name of an included model, whose features judge the labels;
    none for colours and edges; default: the included gmlp_photo_64
--backend
--json  print a summary as JSON

findings:
  unreadable        files that training would stop at, with the reason
  exact duplicate   the same pixels, in files of any format
  near duplicate    a scaled, compressed, brightened or slightly cropped copy
  few pictures      classes with fewer than --min-images pictures
  imbalance         the largest class has more than ten times the pictures of the smallest
  label             labels that classifiers contradict which did not see the picture

Pairs across splits spoil the test accuracy. Without train/ and test/, every fifth picture of
a class is in the test split, as in training.

--out gets findings.csv with all findings, and findings.png with some of the duplicates and labels.
The pictures stay as they are.

examples:
  apps/check_data.py photos/
  apps/check_data.py photos/ --model runs/gmlp_n4_32-photos    judge labels by this model's features
  apps/check_data.py photos/ --min-images 50 --json

exit codes: 0 nothing found, 1 something found, or a failure, 2 wrong usage, 130 stopped with Ctrl-C
"""


def run(options):
    from keras_gmlp.data.datasets import find_path, holds_files
    from keras_gmlp.inference import similarity
    from keras_gmlp.inspection.check import check_folder, write_findings
    from keras_gmlp.inspection.plots import draw_findings
    from keras_gmlp.utils.sources import DEFAULT_BACKBONE, list_shipped

    if not holds_files(options.data):
        raise ValueError(f"{options.data}: no such folder of class folders, or table.")
    default = DEFAULT_BACKBONE if DEFAULT_BACKBONE in list_shipped() else "none"
    model, embed = options.model or default, None
    model = None if model == "none" else model  # but colours and edges
    if model:
        classifier = cli.load_model(model, features=True, domain="images")
        embed = functools.partial(similarity.embed, classifier)
    report = check_folder(find_path(options.data), options.min_images, embed)
    files = [options.out / name for name in FILES]
    write_findings(report.findings, files[0])
    if draw_findings(report.findings, files[1]) is None:
        files.pop().unlink(missing_ok=True)  # of an earlier check
    summary = {**report.summary(), "model": model, "files": list(map(str, files))}
    cli.show_result(options, summary, functools.partial(show, report))
    return 1 if report.findings else 0


def show(report, summary):
    print(f"pictures          {report.pictures:,} in {report.classes} classes")
    for kind, count in summary["findings"].items():
        if kind == "label" and not report.judged:
            print(f"{kind:17} {why_unjudged(report)}")
            continue
        print(f"{kind:17} {count:,}")
        found = [f for f in report.findings if f.finding == kind]
        for finding in found[:SHOWN]:
            print(f"  {describe(finding)}")
        if count > SHOWN:
            print(f"  and {count - SHOWN:,} more")
    if summary["across_splits"]:
        pairs = f"{summary['across_splits']:,} pairs across splits"
        print(f"{pairs}, for training and test: they spoil the test accuracy.")
    if summary["different_classes"]:
        print(f"{summary['different_classes']:,} pairs in different classes: look at their labels.")
    for file in summary["files"]:
        print(f"to                {file}")


def describe(found):
    note = f" ({found.note})" if found.note else ""
    text = {
        "few pictures": f"{found.label}: {found.score}",
        "imbalance": found.note,
        "label": f"{found.path}: {found.label}, more likely {found.other}",
        "unreadable": f"{found.path}: {found.note}",
    }.get(found.finding, f"{found.path} is {found.other}{note}")
    return printable(text)


def why_unjudged(report):
    if report.accuracy is None:
        return "not judged: that takes two classes of five readable pictures"
    share = f"the features predict {100 * report.accuracy:.0f} % of the labels"
    return f"not judged: {share}; train a model on the pictures, and give it as --model RUN"


def check(options):
    from keras_gmlp.data.images.table import name_folder  # here, so that --help is fast

    root = os.path.realpath(os.path.expanduser(options.data))
    options.out = Path(options.out or Path("runs", f"check-{name_folder(root)}"))
    for output in (options.out, *(options.out / name for name in FILES)):
        require_output(output, options.data)


main = cli.Program("check_data", __doc__, USAGE, run, check)
