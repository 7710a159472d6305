"""The processes of a training: the options, and one line when one of them is lost."""

# JAX aborts a process when another one is lost, with a stack trace and no way to catch it. So a
# program with `--coordinator` works in a child process, whose end the program explains.

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading

from keras_gmlp.programs.shared.cli import UsageError, guarded, usage_errors

LOST = (
    "lost another process, or the connection to it; its output says why. Give the same command to "
    "all processes again: the run resumes."
)

# What JAX reports then, if it does not abort.
LOST_PEER = re.compile(r"\bGloo \w+.* failed|\bNCCL\b|CoordinationService")

LINK = "KERAS_GMLP_LINK"  # environment variable: the child's end of the link to its parent
JOINED = b"j"
VARIABLES = {  # Keras' own names
    "coordinator": "KERAS_DISTRIBUTION_JOB_ADDRESSES",
    "processes": "KERAS_DISTRIBUTION_NUM_PROCESSES",
    "process": "KERAS_DISTRIBUTION_PROCESS_ID",
}


PROCESSES = """\
[several processes]  start the same command on each machine, with its own --process
--coordinator HOST:PORT  where process 0 runs, and a free port there
--processes P:int  number of processes
--process I:int  number of this one, from 0
[]
"""


def check_process_options(options):
    """Completes the options from the environment; raises a `UsageError` if one is missing."""
    listed = os.environ.get(VARIABLES["coordinator"], "").split(",")
    options.coordinator = options.coordinator or listed[0] or None
    for name in ("processes", "process"):
        text = os.environ.get(VARIABLES[name])
        if getattr(options, name) is None and options.coordinator and text:
            if not text.isdecimal():
                raise UsageError(f"{VARIABLES[name]} must be a number; received {text!r}")
            setattr(options, name, int(text))
    given = [options.coordinator, options.processes, options.process]
    if any(value is not None for value in given) and None in given:
        raise UsageError("--coordinator, --processes and --process belong together")


def start_processes(name, work, options):
    """Runs a program, alone or as one of several processes, and explains its end."""
    if options.coordinator is None:
        return guarded(name, work)
    if LINK in os.environ:
        return _run_child(lambda: guarded(name, work))
    return _supervise(name, options)


def run_in_processes(list_runs, run, options):
    """Runs what is the same in each process; one with other settings than the rest is refused."""
    with usage_errors():
        options.runs = list_runs(options)
    # After the choice of the backend, and before anything else uses JAX.
    if options.coordinator is not None:
        from keras_gmlp.training.processes import join_processes

        try:
            join_processes(options.coordinator, options.processes, options.process)
        except (ValueError, RuntimeError) as error:
            raise UsageError(error) from None
        if LINK in os.environ:
            os.write(int(os.environ[LINK]), JOINED)
    with reporting(options):
        try:
            return run(options)
        except ValueError as error:
            from keras_gmlp.training.processes import DisagreementError

            if isinstance(error, DisagreementError):
                raise UsageError(error) from None
            raise


def _supervise(name, options):
    ours, theirs = socket.socketpair()
    environment = {**os.environ, LINK: str(theirs.fileno())}
    command = [sys.executable, *sys.orig_argv[1:]]
    options_of_child = {"env": environment, "pass_fds": [theirs.fileno()], "process_group": 0}
    with ours, subprocess.Popen(command, **options_of_child) as child:
        theirs.close()
        while child.returncode is None:
            try:
                child.wait()
            except KeyboardInterrupt:  # in its own group, the child does not hear it
                child.send_signal(signal.SIGINT)
        ours.setblocking(False)
        joined = False
        with contextlib.suppress(BlockingIOError, ConnectionError):
            joined = ours.recv(1) == JOINED
    if child.returncode >= 0:
        return child.returncode
    ended = signal.Signals(-child.returncode)
    if ended != signal.SIGABRT:
        reason, code = f"stopped by {ended.name}.", 1
    elif joined:
        reason, code = LOST, 1
    else:
        reason = (
            f"the {options.processes} processes did not meet at {options.coordinator} in time: "
            "start all of them within a minute, number 0 on that host."
        )
        code = 2
    print(f"{name}: {reason}", file=sys.stderr, flush=True)
    return code


def _run_child(run):
    link = socket.socket(fileno=int(os.environ[LINK]))

    def end_with_parent():
        with contextlib.suppress(OSError):
            link.recv(1)  # returns when the parent has ended
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
    with open(os.devnull, "w") as nowhere:  # for what native code writes: JAX's stack traces
        for number, name in enumerate(("stdout", "stderr"), 1):
            stream = open(os.dup(number), "w", buffering=1, errors="replace")  # noqa: SIM115
            setattr(sys, name, stream)  # to the program's end
            os.dup2(nowhere.fileno(), number)
    try:
        code = run()
    except SystemExit as stopped:  # wrong usage
        code = stopped.code
    if code:
        # JAX would wait for the other processes, which may wait for this one.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code


@contextlib.contextmanager
def reporting(options):
    """Hides standard output unless this is the first process, which reports for all."""
    with contextlib.ExitStack() as stack:
        if options.process:
            print(
                f"process {options.process} of {options.processes} joined {options.coordinator}; "
                "process 0 reports",
                flush=True,
            )
            nowhere = stack.enter_context(open(os.devnull, "w"))
            stack.enter_context(contextlib.redirect_stdout(nowhere))
        try:
            yield
        except Exception as error:  # JAX and Keras raise many types
            if options.coordinator and LOST_PEER.search(str(error)):
                raise RuntimeError(LOST) from None
            raise
