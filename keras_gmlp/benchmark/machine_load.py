"""What a machine was doing besides the work at hand, as Linux tells it; elsewhere it is unknown."""

import dataclasses
import os
from pathlib import Path

STAT = Path("/proc/stat")

MEMORY = Path("/proc/meminfo")

CONTAINER = Path("/sys/fs/cgroup")  # what a container sees of the limits that it is held to

BUSY = 0.1  # a share of the machine's time, or a spread of one measurement, that is too much


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """CPU time so far, in seconds of one core.

    Attributes:
        total: of all cores, idle or not.
        busy: of all cores at work, for whomever.
        own: what this process and its children used of it.
    """

    total: float
    busy: float
    own: float


def snapshot(children=()):
    """A `Snapshot` of now, or `None` where the system does not tell.

    Args:
        children: ids of child processes that live; those that ended are known.
    """
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
    """`(total, busy)` ticks of all cores, from the text of /proc/stat.

    Time that another virtual machine took ("steal") is busy: it was not ours.
    """
    user, nice, system, idle, waiting, interrupts, soft, stolen = (
        int(number) for number in text.splitlines()[0].split()[1:9]
    )
    busy = user + nice + system + interrupts + soft + stolen
    return busy + idle + waiting, busy


def process_ticks(text):
    """Ticks that a process used, from the text of its /proc/PID/stat."""
    fields = text.rpartition(")")[2].split()  # the name before it may hold anything
    return int(fields[11]) + int(fields[12])


def others_share(spans):
    """The share of the machine's CPU time that other processes took, from 0 to 1.

    Args:
        spans: pairs of `Snapshot`s, before and after; `None` in one makes the share unknown.

    Returns:
        The share, or `None`: unknown.
    """
    if not spans or any(None in span for span in spans):
        return None
    total = sum(after.total - before.total for before, after in spans)
    others = sum((after.busy - before.busy) - (after.own - before.own) for before, after in spans)
    return min(1.0, max(0.0, others / total)) if total > 0 else None


def available_memory():
    """Bytes that can be had without swapping, or `None` where the system does not tell."""
    left = [size for size in (_memory("MemAvailable"), _left_to_container()) if size is not None]
    return min(left, default=None)


def total_memory():
    """Bytes of the machine's memory, or `None` where the system does not tell."""
    return _memory("MemTotal")


def _left_to_container():
    """Bytes up to the limit of version 2 of Linux' control groups; `None` without one."""
    try:
        limit, used = (int((CONTAINER / f"memory.{n}").read_text()) for n in ("max", "current"))
        lines = (CONTAINER / "memory.stat").read_text().splitlines()
        files = int(dict(line.split() for line in lines)["inactive_file"])
    except (OSError, ValueError, KeyError):  # no such group, or "max": no limit
        return None
    return limit - used + files  # what files take is given back on demand


def _memory(name):
    lines = MEMORY.read_text().splitlines() if MEMORY.exists() else []
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith(name)), None)
