"""Works through cases one after another; the parent sends their kinds and numbers.

`python -m attack.worker SEED FOLDER` reads a kind and a number from each line of standard input and
answers with one line of JSON, after the line "ready" for a new kind. It leaves the files of the
last case in FOLDER/case.
"""

import contextlib
import functools
import json
import os
import random
import resource
import shutil
import sys
import time
import traceback
from pathlib import Path

from load_app import load_app

from attack.kinds import SilentLossError, find_kind

LONGEST = 4000  # characters of an error

ROOM = 4 * 2**30  # bytes that a case may allocate; the parent counts less than that as a failure


def main(seed, folder):
    folder, kinds = Path(folder), {}
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    output = os.open(folder / "output", os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
    os.dup2(output, 1)
    os.dup2(output, 2)
    guarded = load_app("cli").guarded
    for line in sys.stdin:
        kind, number = line.split()
        if kind not in kinds:
            (folder / kind).mkdir()
            kinds[kind] = find_kind(kind)(folder / kind)
            _limit_memory()
            print("ready", file=answers)
        cases = kinds[kind]
        shutil.rmtree(folder / "case", ignore_errors=True)
        (folder / "case").mkdir()
        case = cases.make(random.Random(f"{kind}-{seed}-{number}"), folder / "case")
        os.ftruncate(output, 0)
        _reset_peak()
        start = time.perf_counter()
        outcome, text = run_case(guarded, functools.partial(cases.check, case), output)
        result = {"seconds": round(time.perf_counter() - start, 3), "memory": _read_peak()}
        print(json.dumps({"outcome": outcome, "text": text, **result}), file=answers)


def run_case(guarded, check, output):
    """Returns the outcome of a case, and what it printed."""
    try:
        code = guarded("attack", lambda: check() or 0)
    except SilentLossError as error:
        return "silent loss", str(error)
    except Exception:
        return "traceback", traceback.format_exc()[-LONGEST:]
    lines = os.pread(output, LONGEST + 1, 0).decode(errors="replace").splitlines(keepends=True)
    # A picture may be read with a warning, of one line each.
    text = "".join(line for line in lines if not line.startswith("attack: warning: "))
    if code == 0:
        return ("output", text[:LONGEST]) if text else ("ok", "")
    one_line = text.startswith("attack: ") and text.find("\n") == len(text) - 1
    return ("refused" if one_line else "output"), text[:LONGEST]


def _limit_memory():
    """Has allocations fail before they take all memory of the machine."""
    if sys.platform == "linux":
        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (_read_status("VmData") + ROOM, most))


def _reset_peak():
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _read_peak():
    """Returns the largest resident memory since `_reset_peak`, in bytes."""
    if sys.platform == "linux":
        return _read_status("VmHWM")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _read_status(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(name))


if __name__ == "__main__":
    main(*sys.argv[1:])
