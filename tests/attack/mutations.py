"""Random changes of bytes and of JSON values."""

import copy
import json
import shutil

NUMBERS = (0, 1, 2**7, 2**8 - 1, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1)

VALUES = (
    *(None, True, False, 0, -1, 1, 0.5, 1e308, 2**31, 10**30, float("nan"), float("inf")),
    *("", "x", "0.9", "a\nb", "\u202e\x1b[31m", "\ud800", "../../x", "é" * 500),
    *([], {}, [1], [None], [[]], {"x": 1}, {"class_name": "Lambda", "config": {}}),
)


def mutate(data, rng):
    """Returns bytes with one to eight random changes."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        place = _choose_place(data, rng)
        change = rng.randrange(8)
        if change < 3 and data:
            data[place] ^= 1 << rng.randrange(8)
        elif change == 3:
            data[place : place + 4] = rng.choice(NUMBERS).to_bytes(4, rng.choice(("little", "big")))
        elif change == 4:
            del data[place:]
        elif change == 5:
            del data[place : place + rng.randrange(1, 64)]
        elif change == 6:
            data[place:place] = rng.randbytes(rng.randrange(1, 64))
        else:
            start = _choose_place(data, rng)
            data[place:place] = data[start : start + rng.randrange(1, 256)]
    return bytes(data)


def copy_folder(source, place, rng):
    """Copies a folder; returns one or two of the copy's files, in random order, to change."""
    shutil.copytree(source, place)
    files = sorted(path for path in place.rglob("*") if path.is_file())
    return rng.sample(files, rng.choice((1, 1, 2)))


def write_json(value, rng, share):
    """Returns JSON as bytes: a share of them with changes of bytes, a few nested without end."""
    text = json.dumps(value).encode()
    text = mutate(text, rng) if rng.random() < share else text
    return b"[" * 100_000 if rng.random() < 0.02 else text


def _choose_place(data, rng):
    """Returns an index; half of them at the start or the end, where the headers are."""
    length = max(1, len(data))
    near = rng.randrange(min(length, 128))
    return rng.choice((near, length - 1 - near, rng.randrange(length), rng.randrange(length)))


def mutate_json(value, rng):
    """Returns a JSON value in which one to three entries have odd values."""
    value = json.loads(json.dumps(value))
    for _ in range(rng.choice((1, 1, 3))):
        places = list(_find_places(value))
        if not places:
            return _choose_value(rng)
        holder, key = rng.choice(places)
        if isinstance(holder, dict) and rng.random() < 0.2:
            del holder[key]
        else:
            holder[key] = _choose_value(rng)
    return value


def _choose_value(rng):
    return copy.deepcopy(rng.choice(VALUES))  # since a second change may go into it


def _find_places(value):
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _find_places(value[key])
