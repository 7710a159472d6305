"""Latency of a classifier on this machine."""

import time

import numpy as np


def measure_latencies(classifiers, batch=1, repeats=50):
    """Measures how long each classifier takes for a batch."""
    times = {name: [] for name in classifiers}
    images = {name: np.zeros((batch, *c.image_shape), "uint8") for name, c in classifiers.items()}
    for _ in range(5 + repeats):
        for name, classifier in classifiers.items():
            began = time.perf_counter()
            classifier.logits(images[name])
            times[name].append(time.perf_counter() - began)
    return {name: float(np.median(seconds[5:])) for name, seconds in times.items()}
