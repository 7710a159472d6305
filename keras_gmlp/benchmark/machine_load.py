"""What else a machine does, read from Linux; unknown on other systems."""

import dataclasses
import os
from pathlib import Path

STAT = Path("/proc/stat")
MEMORY = Path("/proc/meminfo")
CONTAINER = Path("/sys/fs/cgroup")  # limits, as a container sees them
BUSY = 0.1  # largest share of others' CPU time, and spread of a measurement, on a quiet machine


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """CPU time so far, in core seconds."""

    total: float  # of all cores, idle or not
    busy: float  # that all processes used
    own: float  # that this process and its children used


def snapshot(children=()):
    """Returns a `Snapshot`, or `None` if the system does not report CPU time."""
    if not STAT.exists():
        return None
    ticks = os.sysconf("SC_CLK_TCK")
    times = os.times()
    own = times.user + times.system + times.children_user + times.children_system
    stats = [Path(f"/proc/{child}/stat") for child in children]
    own += sum(process_ticks(stat.read_text()) for stat in stats if stat.exists()) / ticks
    total, busy = machine_ticks(STAT.read_text())
    return Snapshot(total / ticks, busy / ticks, own)


def machine_ticks(text):
    """Reads the `(total, busy)` ticks of all cores from the text of /proc/stat."""
    user, nice, system, idle, waiting, interrupts, soft, stolen = (
        int(number) for number in text.splitlines()[0].split()[1:9]
    )
    busy = user + nice + system + interrupts + soft + stolen
    return busy + idle + waiting, busy


def process_ticks(text):
    """Reads the ticks that a process used from the text of /proc/PID/stat."""
    fields = text.rpartition(")")[2].split()  # the name before it may contain anything
    return int(fields[11]) + int(fields[12])


def others_share(spans):
    """Returns the share of CPU time that other processes took."""
    if not spans or any(None in span for span in spans):
        return None
    total = sum(after.total - before.total for before, after in spans)
    others = sum((after.busy - before.busy) - (after.own - before.own) for before, after in spans)
    return min(1.0, max(0.0, others / total)) if total > 0 else None


def available_memory():
    """Returns the bytes available without swapping, or `None` if unknown."""
    left = [size for size in (_memory("MemAvailable"), _left_to_container()) if size is not None]
    return min(left, default=None)


def total_memory():
    """Returns the bytes of the machine's memory, or `None` if unknown."""
    return _memory("MemTotal")


def _left_to_container():
    """Returns the bytes left below the limit of a cgroup v2, or `None` without a limit."""
    try:
        limit, used = (int((CONTAINER / f"memory.{n}").read_text()) for n in ("max", "current"))
        lines = (CONTAINER / "memory.stat").read_text().splitlines()
        files = int(dict(line.split() for line in lines)["inactive_file"])
    except (OSError, ValueError, KeyError):  # no such group, or a limit of "max"
        return None
    return limit - used + files  # cached files are evicted on demand


def _memory(name):
    lines = MEMORY.read_text().splitlines() if MEMORY.exists() else []
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith(name)), None)
