"""The processes of a training: their options, which Keras takes, and the line of a lost one."""

import contextlib
import os
import re

PROCESSES = """\
[several processes]  start the same command on each machine, with its own --process
--coordinator HOST:PORT  where process 0 runs, and a free port there
--processes P:int  number of processes
--process I:int  number of this one, from 0
[]
"""

LOST = (
    "lost another process, or the connection to it; its output says why. Give the same command to "
    "all processes again: the run resumes."
)
LOST_PEER = re.compile(r"\bGloo \w+.* failed|\bNCCL\b|CoordinationService")  # as JAX reports it


@contextlib.contextmanager
def joining(options):
    """Joins the other processes, if there are some; the first one alone prints, for all."""
    # Call it before anything else uses JAX.
    if not (options.coordinator or os.environ.get("KERAS_DISTRIBUTION_JOB_ADDRESSES")):
        yield
        return
    import keras

    from keras_gmlp.training.devices import find_process, is_main

    if keras.backend.backend() != "jax":
        raise ValueError("several processes require JAX; give --backend jax")
    keras.distribution.initialize(options.coordinator, options.processes, options.process)
    options.joined = True
    with naming_lost(), contextlib.ExitStack() as stack:
        if not is_main():
            print("process {} of {} joined; process 0 reports".format(*find_process()), flush=True)
            nowhere = stack.enter_context(open(os.devnull, "w"))
            stack.enter_context(contextlib.redirect_stdout(nowhere))
        yield


@contextlib.contextmanager
def naming_lost():
    """Says what to do when another process is lost."""
    try:
        yield
    except Exception as error:  # JAX and Keras raise many types
        if LOST_PEER.search(str(error)):
            raise RuntimeError(LOST) from None
        raise
