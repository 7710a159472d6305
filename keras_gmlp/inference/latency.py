"""How long calls take on this machine."""

import time

import numpy as np


def time_calls(calls, repeats=50, clock=time.perf_counter):
    """Returns the median seconds of each function, called in turns."""
    # On one thread, `time.process_time` leaves out other work on the machine.
    times = {name: [] for name in calls}
    for _ in range(5 + repeats):
        for name, call in calls.items():
            began = clock()
            call()
            times[name].append(clock() - began)
    return {name: float(np.median(seconds[5:])) for name, seconds in times.items()}
