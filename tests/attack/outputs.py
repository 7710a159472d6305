"""Output paths near, in and on data: nothing that is written becomes data, or replaces it."""

import os
from pathlib import Path

from attack.kinds import Cases, SilentLossError
from keras_gmlp.utils.files import atomic_folder, atomic_write, require_output

PARTS = ("data", "data", "a", "..", ".", "link", "loop", "new", "DATA", "other", "~", "a b", "\n")
SOURCES = ("data", "data/labels.csv", "link", "hard.csv", "soft.csv", "data/.", "")
FILES = ("labels.csv", "hard.csv", "soft.csv", "new.csv", "a.png")


class Outputs(Cases):
    """Each case is a pair of paths, of data and of an output, which is then written."""

    def make(self, rng, folder):
        (folder / "data" / "a").mkdir(parents=True)
        (folder / "other").mkdir()
        (folder / "data" / "a" / "a.png").write_bytes(b"content")
        (folder / "data" / "labels.csv").write_text("path,label\na/a.png,a\n")
        (folder / "link").symlink_to("data")
        (folder / "other" / "data").symlink_to(folder / "data" / "a")
        (folder / "data" / "loop").symlink_to("..")
        os.link(folder / "data" / "labels.csv", folder / "hard.csv")
        (folder / "soft.csv").symlink_to("data/labels.csv")
        source = rng.choice(SOURCES)
        parts = [rng.choice(PARTS) for _ in range(rng.randrange(1, 5))]
        parts += [rng.choice(FILES)] * (rng.random() < 0.5)
        whole = str(folder) if rng.random() < 0.5 else ""
        return folder, source, os.path.join(whole, *parts), whole

    def check(self, case):
        folder, source, output, whole = case
        before, home = read_files(folder / "data"), os.getcwd()
        os.chdir(folder)
        try:
            path = require_output(output, os.path.join(whole, source) if source else source)
            if source in ("", "x") or Path(output).name in ("", ".", ".."):
                return
            if path.suffix:
                with atomic_write(path) as temporary:
                    temporary.write_text("result")
            elif not path.exists():  # as programs do
                with atomic_folder(path) as temporary:
                    temporary.mkdir()
                    (temporary / "result.csv").write_text("result")
        finally:
            os.chdir(home)
            after = read_files(folder / "data")
        if source in ("data", "link", "data/.") and after != before:
            raise SilentLossError(f"{output}: the data are {sorted(after)}, were {sorted(before)}")
        # Another name of a file stays, as its old content does.
        if source == "data/labels.csv" and after["labels.csv"] != before["labels.csv"]:
            raise SilentLossError(f"{output}: replaced the table")


def read_files(folder):
    """Returns the contents of all files in a folder, by their paths."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
