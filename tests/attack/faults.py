"""Cases that fail in each way, to test the attack itself; a full attack has none of them."""

import os
import signal
import time

import numpy as np

from attack.kinds import Cases, SilentLossError


class Faults(Cases):
    """Each case is one of `FAULTS`."""

    def make(self, rng, folder):
        way = rng.choice(list(FAULTS))
        (folder / "input").write_text(way)
        return way

    def check(self, way):
        FAULTS[way]()


def fail(error):
    raise error


FAULTS = {
    "ok": lambda: None,
    "refused": lambda: fail(ValueError("expected a case; received a fault.")),
    "output": lambda: os.write(2, b"a note of native code\n"),
    "traceback": lambda: fail(KeyError("x")),
    "silent loss": lambda: fail(SilentLossError("other pixels")),
    "memory": lambda: np.ones(400_000_000, "uint8"),
    "crash": lambda: os.kill(os.getpid(), signal.SIGSEGV),
    "hang": lambda: time.sleep(60),
}
