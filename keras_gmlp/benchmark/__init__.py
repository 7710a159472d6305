"""How fast models run: candidates beside one another, each in a process of its own.

`models` makes the files, `candidates` lists the ways to run them, `runtimes` loads one in a
`worker`, `process` is this side of such a worker, `measuring` takes them in turns, `busyness` tells
what else the machine did, `report` and `chart` show what was found.
"""
