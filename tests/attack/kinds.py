"""The kinds of cases, and how many of each a full attack has."""

import dataclasses
import importlib


class SilentLossError(Exception):
    """Raised if a damaged file gave another result without an error."""


class Cases:
    """The base of a kind's class, with a folder of its own for what all cases share.

    `make(rng, folder)` writes a case and returns what `check` takes, which does what a user would
    do and raises what a user would see.
    """

    def __init__(self, folder):
        self.folder = folder


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of case: its module here, and the subclass of `Cases` in it."""

    module: str
    name: str
    count: int  # cases of a full attack
    short: int  # in the ordinary tests
    seconds: float = 10.0  # limit on the time of a case
    memory: float = 2e9  # limit on its resident memory, in bytes


KINDS = {
    "images": Kind("images", "Images", 100_000, 300),
    "models": Kind("models", "Models", 20_000, 40),
    "cards": Kind("cards", "Cards", 2_000, 40),
    "runs": Kind("runs", "Runs", 200, 10),
    "folders": Kind("folders", "Folders", 2_000, 50),
    "tables": Kind("tables", "Tables", 20_000, 100),
    "corpora": Kind("corpora", "Corpora", 2_000, 30),
    "packed": Kind("packed", "Packed", 5_000, 60),
    "heads": Kind("heads", "Heads", 2_000, 20),
    "plans": Kind("plans", "Plans", 5_000, 60),
    "outputs": Kind("outputs", "Outputs", 5_000, 60),
    "tokenizers": Kind("tokenizers", "Tokenizers", 2_000, 15),
    "clients": Kind("clients", "Clients", 2_000, 30),
    "kills": Kind("kills", "Kills", 100, 0, seconds=600),
    "interrupts": Kind("kills", "Interrupts", 100, 0, seconds=600),
    # Tests the attack itself. A busy virtual machine takes over 3 s to fill the memory.
    "faults": Kind("faults", "Faults", 0, 0, 6, 3e8),
}


def find_kind(name):
    """Returns the class of a kind."""
    kind = KINDS[name]
    return getattr(importlib.import_module(f"attack.{kind.module}"), kind.name)
