"""Trees of folders with images, links, pipes, odd names, and folders without rights."""

import os

from attack.kinds import SilentLossError
from keras_gmlp.data.images.find_images import find_images

NOT_UTF8 = b"\xff".decode(errors="surrogateescape")
NAMES = ("a", "ß", "a b", "a\nb", "\u202ex", "%2e%2e", "-x", NOT_UTF8)

MODES = (0o000, 0o111, 0o333, 0o444)


class Folders:
    """Each case is a tree; a user who is not root lists its images."""

    def __init__(self, folder):
        "".encode("unicode_escape")  # loads the codec: Python may lie where only root reads

    def make(self, rng, folder):
        visible, locked = set(), []
        self._fill(rng, folder, visible, locked, depth=0)
        for path in locked:
            path.chmod(rng.choice(MODES))
        return folder, visible, locked

    def _fill(self, rng, folder, visible, locked, depth):
        for number in range(rng.randrange(1, 5)):
            path = folder / f"{number}{rng.choice(NAMES)}"
            kind = rng.randrange(10)
            if kind < 4 and depth < 4:
                path.mkdir()
                self._fill(rng, path, visible, locked, depth + 1)
                if rng.random() < 0.05:
                    locked.append(path)
            elif kind == 4:
                path.with_name(f"{path.name}.txt").write_text("no image")
            elif kind == 5:
                path.with_name(f".{path.name}.png").write_bytes(b"hidden")
            elif kind == 6:
                os.mkfifo(path.with_name(f"{path.name}.png"))
            elif kind == 7:
                link = path.with_name(f"{path.name}.png")
                link.symlink_to(rng.choice(("missing", "/etc/hostname", link.name)))
                visible.add(link)  # a link that leads nowhere is reported when it is read
            else:
                image = path.with_name(f"{path.name}{rng.choice(('.png', '.JPG', '.tiff'))}")
                image.write_bytes(b"content")
                visible.add(image)

    def check(self, case):
        folder, visible, locked = case
        user = os.geteuid()
        if user == 0:  # nothing is forbidden to root
            os.seteuid(65534)
        try:
            found = find_images(folder)
        finally:
            os.seteuid(user)
            for path in reversed(locked):  # so that the parent can delete the tree
                path.chmod(0o755)
        if set(found) != visible or locked:
            raise SilentLossError(
                f"listed {len(found)} of {len(visible)} images, {len(locked)} locked"
            )
