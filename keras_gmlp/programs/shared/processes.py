"""The processes of a training: their options, which Keras takes, and the line of a lost one."""

import contextlib
import os
import re
import sys

from keras_gmlp.programs.shared.cli import guarded, usage_errors

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


def start_processes(name, work, options):
    """Runs a program, perhaps as one of several processes."""
    code = guarded(name, work)
    if code and _is_one_of_several(options):
        sys.stdout.flush()
        os._exit(code)  # JAX would wait for the others, which may wait for this one
    return code


def join_processes(options):
    """Joins the other processes, if there are some; call it before anything else uses JAX."""
    if not _is_one_of_several(options):
        return
    import keras

    with usage_errors():
        if keras.backend.backend() != "jax":
            raise ValueError("several processes require JAX; give --backend jax")
        keras.distribution.initialize(options.coordinator, options.processes, options.process)


@contextlib.contextmanager
def reporting(options):
    """Hides standard output unless this is the first process, which reports for all."""
    if not _is_one_of_several(options):
        yield
        return
    from keras_gmlp.training.devices import find_process, is_main

    with contextlib.ExitStack() as stack:
        if not is_main():
            print("process {} of {} joined; process 0 reports".format(*find_process()), flush=True)
            nowhere = stack.enter_context(open(os.devnull, "w"))
            stack.enter_context(contextlib.redirect_stdout(nowhere))
        try:
            yield
        except Exception as error:  # JAX and Keras raise many types
            if LOST_PEER.search(str(error)):
                raise RuntimeError(LOST) from None
            raise


def _is_one_of_several(options):
    return bool(options.coordinator or os.environ.get("KERAS_DISTRIBUTION_JOB_ADDRESSES"))
