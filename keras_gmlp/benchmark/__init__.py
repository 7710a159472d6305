"""Measures models and trainings: each candidate in its own process, all of them in turns.

`harness` measures what is listed in `__main__`. The program `benchmark` measures the runtimes of a
model: `files` prepares the model files, `runtimes` lists the ways to run them, a `worker` process
loads one, `measuring` takes them in turns, `machine_load` reads what else the machine does, and
`report` presents the results.
"""
