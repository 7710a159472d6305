"""Attacks the library: odd files, folders, kills and clients. A failing case is kept as files."""

import collections
import concurrent.futures
import contextlib
import json
import os
import sys
import tempfile
import threading
import time
from pathlib import Path

from attack.kinds import KINDS
from attack.workers import BAD, GOOD, Worker
from keras_gmlp.utils.errors import OneLineParser
from keras_gmlp.utils.progress import ProgressBar

KEPT = 20  # failing cases of a kind that are kept

EPILOG = """\
exit codes: 0 no failure, 1 a failure, 2 wrong usage
outcomes: ok and refused (an error of one line) are good; output (more than one line), traceback,
silent loss, crash (a signal), hang (more than 10 s) and memory (more than 2 GB) are failures
"""


def parse(arguments):
    parser = OneLineParser(prog="attack", description=__doc__, epilog=EPILOG)
    for name, kind in KINDS.items():
        parser.add_argument(
            f"--{name}", type=int, metavar="N", help=f"cases; default: {kind.count:,}"
        )
    parser.add_argument("--only", action="store_true", help="run only the kinds with a given N")
    parser.add_argument("--case", metavar="KIND:NUMBER", help="repeat one case")
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="default: the cores")
    parser.add_argument(
        "--out", type=Path, default=Path("build/attack"), help="default: %(default)s"
    )
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")
    options = parser.parse_args(arguments)
    options.counts = {}
    for name, kind in KINDS.items():
        count, usual = getattr(options, name), 0 if options.only else kind.count
        options.counts[name] = range(usual if count is None else count)
    if options.case:
        name, _, number = options.case.partition(":")
        if name not in KINDS or not number.isdigit():
            parser.error(f"--case must be KIND:NUMBER; received {options.case}")
        options.counts = {name: range(int(number), int(number) + 1)}
    if options.jobs < 1:
        parser.error(f"--jobs must be at least 1; received {options.jobs}")
    return options


def main(arguments=None):
    options = parse(arguments)
    summary = {}
    for name, numbers in options.counts.items():
        if numbers:
            summary[name] = attack(name, numbers, options)
            print_row(name, summary[name])
    if options.json:
        print(json.dumps(summary))
    return int(any(row["outcomes"].get(bad) for row in summary.values() for bad in BAD))


def attack(name, numbers, options):
    """Runs the cases of a kind; returns their counts by outcome, and the largest figures."""
    outcomes, kept, most = collections.Counter(), [], {"seconds": 0, "memory": 0}
    lock, start = threading.Lock(), time.monotonic()
    left = iter(numbers)
    with ProgressBar(name, len(numbers)) as bar, open_to_all() as folder:

        def work(job):
            with Worker(options.seed, Path(folder, str(job))) as worker:
                while True:
                    with lock:
                        number = next(left, None)
                    if number is None:
                        return
                    result = worker.run(name, number)
                    with lock:
                        outcomes[result["outcome"]] += 1
                        for key in most:
                            most[key] = max(most[key], result[key])
                        bar.show(outcomes.total())
                        if result["outcome"] not in GOOD and len(kept) < KEPT:
                            kept.append(str(options.out / f"{name}-{number}"))
                            worker.keep(result, name, number, Path(kept[-1]))

        jobs = min(options.jobs, len(numbers))
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for done in [pool.submit(work, job) for job in range(jobs)]:
                done.result()
    seconds = round(time.monotonic() - start)
    return {"outcomes": dict(outcomes), "longest": most, "seconds": seconds, "kept": kept}


@contextlib.contextmanager
def open_to_all():
    """Yields a temporary folder, which another user may enter, as the cases `Folders` do."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield folder


def print_row(name, row):
    """Prints the counts of a kind on standard error."""
    counts = ", ".join(f"{row['outcomes'].get(k, 0):,} {k}" for k in (*GOOD, *BAD))
    most = row["longest"]
    print(
        f"{name:8} {counts}; longest {most['seconds']:.1f} s, {most['memory'] / 1e6:.0f} MB; "
        f"{row['seconds']} s in all",
        file=sys.stderr,
        flush=True,
    )
    for path in row["kept"]:
        print(f"  kept: {path}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
