"""What else a machine does, read from Linux; unknown on other systems."""

import contextlib
import os
import typing
from pathlib import Path

STAT = Path("/proc/stat")
MEMORY = Path("/proc/meminfo")
CONTAINER = Path("/sys/fs/cgroup")  # limits, as a container sees them
BUSY = 0.1  # largest share of others' CPU time, and spread of a measurement, on a quiet machine


class Snapshot(typing.NamedTuple):
    """CPU time so far, in core seconds."""

    total: float  # of all cores, idle or not
    busy: float  # that all processes used
    own: float  # that this process and its children used


def snapshot(children=()):
    """Returns a `Snapshot`, or `None` if the system does not report CPU time."""
    if not STAT.exists():
        return None
    ticks = os.sysconf("SC_CLK_TCK")
    own = sum(os.times()[:4])  # of this process and of children that ended
    stats = [Path(f"/proc/{child}/stat") for child in children]
    own += sum(process_ticks(stat.read_text()) for stat in stats if stat.exists()) / ticks
    total, busy = machine_ticks(STAT.read_text())
    return Snapshot(total / ticks, busy / ticks, own)


def machine_ticks(text):
    """Reads the `(total, busy)` ticks of all cores from the text of /proc/stat."""
    # user, nice, system, idle, waiting for disks, interrupts, soft interrupts, stolen
    ticks = [int(number) for number in text.splitlines()[0].split()[1:9]]
    return sum(ticks), sum(ticks) - ticks[3] - ticks[4]


def process_ticks(text):
    """Reads the ticks that a process used from the text of /proc/PID/stat."""
    fields = text.rpartition(")")[2].split()  # the name before it may contain anything
    return int(fields[11]) + int(fields[12])


def others_share(spans):
    """Returns the share of CPU time that other processes took between pairs of snapshots."""
    if not spans or any(None in span for span in spans):
        return None
    total = sum(after.total - before.total for before, after in spans)
    others = sum((after.busy - before.busy) - (after.own - before.own) for before, after in spans)
    return min(1.0, max(0.0, others / total)) if total > 0 else None


def available_memory():
    """Returns the bytes available without swapping, or `None` if unknown."""
    left = [read_memory("MemAvailable")]
    with contextlib.suppress(OSError, ValueError, KeyError):  # no cgroup v2, or a limit of "max"
        limit, used = (int((CONTAINER / f"memory.{n}").read_text()) for n in ("max", "current"))
        lines = (CONTAINER / "memory.stat").read_text().splitlines()
        files = int(dict(line.split() for line in lines)["inactive_file"])
        left.append(limit - used + files)  # cached files are evicted on demand
    return min((size for size in left if size is not None), default=None)


def read_memory(name):
    """Returns the bytes of an entry of /proc/meminfo, such as `MemTotal`, or `None`."""
    lines = MEMORY.read_text().splitlines() if MEMORY.exists() else []
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith(name)), None)
