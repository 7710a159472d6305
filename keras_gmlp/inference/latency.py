"""Latency of a model on this machine."""

import functools
import time

import numpy as np


def measure_latencies(classifiers, batch=1, repeats=50):
    """Measures how long each classifier takes for a batch."""
    calls = {
        name: functools.partial(c.logits, np.zeros((batch, *c.image_shape), "uint8"))
        for name, c in classifiers.items()
    }
    return time_calls(calls, repeats)


def time_calls(calls, repeats=50):
    """Returns the median seconds of each function, called in turns."""
    times = {name: [] for name in calls}
    for _ in range(5 + repeats):
        for name, call in calls.items():
            began = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - began)
    return {name: float(np.median(seconds[5:])) for name, seconds in times.items()}
