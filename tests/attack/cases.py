"""Attacks the library with odd images and model files, and with kills, made from a seed.

A case passes if it gives a result, or an error of one line. One that fails is kept as files.
"""

import functools
import io
import os
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback
import zlib
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path

import keras
import numpy as np
from PIL import Image

import keras_gmlp
from keras_gmlp.data.images.read_image import read_image
from keras_gmlp.models.saved import load_model
from keras_gmlp.programs.shared.parser import Parser
from keras_gmlp.utils.card import write_card
from keras_gmlp.utils.files import read_json
from keras_gmlp.weights.files import read_checkpoint
from keras_gmlp.weights.loading import load

ROOT = Path(__file__).resolve().parents[2]
TFLITE = ROOT / "saved_models" / "gmlp_n4_32-cifar10" / "model.tflite"

PART = 100  # cases that a process runs in a row
ROOM = 4 * 2**30  # bytes that they may allocate

NUMBERS = (0, 1, 2**7, 2**8 - 1, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1)


def mutate(data, rng):
    """Returns bytes with one to eight random changes."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        length = max(1, len(data))
        near = rng.randrange(min(length, 128))  # half at the start or the end, where headers are
        place = rng.choice((near, length - 1 - near, rng.randrange(length), rng.randrange(length)))
        change = rng.randrange(7)
        if change < 2 and data:
            data[place] ^= 1 << rng.randrange(8)
        elif change == 2:
            data[place : place + 4] = rng.choice(NUMBERS).to_bytes(4, rng.choice(("little", "big")))
        elif change == 3:
            del data[place:]
        elif change == 4:
            del data[place : place + rng.randrange(1, 64)]
        elif change == 5:
            data[place:place] = rng.randbytes(rng.randrange(1, 64))
        else:
            data[place:place] = data[: rng.randrange(1, 256)]
    return bytes(data)


# Images: a damaged file of any format that is read; one in fifty is whole.

FORMS = (
    *(("png", mode, {}) for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "I;16")),
    *(("jpeg", mode, {"progressive": p}) for mode in ("L", "RGB", "CMYK") for p in (False, True)),
    *(("webp", mode, {"lossless": w}) for mode in ("RGB", "RGBA") for w in (False, True)),
    *(("gif", mode, {}) for mode in ("L", "P", "RGBA")),
    *(("bmp", mode, {}) for mode in ("1", "L", "P", "RGB", "RGBA")),
    *(("ppm", mode, {}) for mode in ("1", "L", "RGB", "I;16")),
    *(("tiff", mode, {}) for mode in ("1", "L", "P", "RGB", "RGBA", "CMYK", "I;16")),
    *(("tiff", "RGB", {"compression": name}) for name in ("tiff_lzw", "tiff_deflate", "packbits")),
)


def make_image(rng, folder):
    form, mode, options = rng.choice(FORMS)
    height, width = rng.randrange(1, 64), rng.randrange(1, 64)
    pixels = np.frombuffer(rng.randbytes(height * width * 4), "uint8").reshape(height, width, 4)
    image = Image.fromarray(pixels)
    image = (image.convert("L") if mode == "I;16" else image).convert(mode)
    buffer, whole = io.BytesIO(), rng.random() < 0.02
    image.save(buffer, form, **options)
    data = buffer.getvalue() if whole else mutate(buffer.getvalue(), rng)
    if form == "png" and rng.random() < 0.7:
        data = repair_png(data)
    path = folder / f"image.{form}"
    path.write_bytes(data)
    return path, rng.choice(((16, 16, 3), (1, 7, 1), (64, 48, 3))), whole


def check_image(case):
    path, shape, whole = case
    try:
        pixels = read_image(path, shape)
    except ValueError:
        assert not whole, "a good image is refused"
        raise
    assert (pixels.shape, pixels.dtype) == (shape, "uint8")


def repair_png(data):
    """Returns a PNG file whose chunks have right checksums, so that its content is decoded."""
    result, place = bytearray(data), 8
    while place + 12 <= len(data):
        end = place + 8 + struct.unpack_from(">I", data, place)[0]
        if end + 4 > len(data):
            break
        struct.pack_into(">I", result, end, zlib.crc32(data[place + 4 : end]))
        place = end + 4
    return bytes(result)


# Model files and weights: damaged.

CHECKED = (".tflite", ".keras", ".npz")  # a digest or a checksum protects their numbers


@functools.cache
def list_models():
    """Returns whole files, and what each of them gives."""
    folder = Path(tempfile.mkdtemp())
    keras.utils.set_random_seed(0)
    model = keras_gmlp.gMLP(8, 1, hidden_dim=16, patch_size=4, classes=3, input_shape=(8, 8, 3))
    model.save(folder / "model.keras")
    write_card(folder / "model.keras", model, ["a", "b", "c"])
    shutil.copy(TFLITE, folder / "model.tflite")
    arrays = {f"w{i}": np.full((i + 1, 5), i, "float32") for i in range(4)}
    np.savez(folder / "model.npz", **arrays)
    if keras.backend.backend() == "torch":
        import torch
        from safetensors.numpy import save_file

        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        torch.save(tensors, folder / "model.pth")
        save_file(arrays, folder / "model.safetensors")
    return {path: read_numbers(path) for path in sorted(folder.iterdir())}


def make_model(rng, folder):
    source = rng.choice(list(list_models()))
    path = folder / source.name
    path.write_bytes(mutate(source.read_bytes(), rng))
    return source, path


def check_model(case):
    source, path = case
    found, expected = read_numbers(path), list_models()[source]
    if path.suffix in CHECKED:
        for name in found.keys() & expected:
            np.testing.assert_array_equal(found[name], expected[name], "silent loss")


def read_numbers(path):
    """Returns the arrays in a file of weights, or the logits of a model."""
    if path.suffix in (".npz", ".pth", ".safetensors"):
        return read_checkpoint(path)[0]
    classifier = load(path)
    return {"logits": classifier.logits(np.full((1, *classifier.image_shape), 100.0, "float32"))}


# Kills: a training that a signal ends and the same command resumes gives the same weights.

RUN = (
    *("--data", "digits", "--image-size", "16", "--fraction", "0.1", "--epochs", "3", "--json"),
    *("--model", "gmlp_n4_32", "--precision", "float32", "--patch-size", "8"),
    *("--set-model", "depth=1", "--set-model", "dim=16", "--set-model", "hidden_dim=32"),
)


def start(run):
    command = [sys.executable, str(ROOT / "apps" / "train.py"), *RUN, "--out", str(run)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment
    )


def finish(process):
    """Waits for a training; returns its exit code and its standard error."""
    text = process.communicate()[1]
    return process.returncode, text.strip()


def read_result(run):
    """Returns the weights of a complete run, and its test loss."""
    loss = read_json(run / "metrics.json")["test_loss"]
    return [*load_model(run / "model.keras", compile=False).get_weights(), np.float64(loss)]


@functools.cache
def train_whole():
    """Returns the result of a training that nothing stops, and its seconds."""
    run, began = Path(tempfile.mkdtemp()), time.monotonic()
    code, text = finish(start(run))
    assert code == 0, text
    return read_result(run), time.monotonic() - began


def make_kill(rng, folder):
    return rng.choice(("SIGKILL", "SIGKILL", "SIGTERM", "SIGINT")), rng.random(), folder / "run"


def check_kill(case):
    name, share, run = case
    expected, seconds = train_whole()
    process = start(run)
    time.sleep(share * seconds)
    process.send_signal(getattr(signal, name))
    code, text = finish(process)
    assert code in {"SIGKILL": (0, -9), "SIGTERM": (0, -15), "SIGINT": (0, 130)}[name], text
    assert code != 130 or text.splitlines()[-1].startswith("train: stopped"), text
    code, text = finish(start(run))
    assert code == 0, f"the run does not go on: {text}"
    for found, whole in zip(read_result(run), expected, strict=True):
        np.testing.assert_array_equal(found, whole)
    left = [path.name for path in run.rglob(".*") if path.is_file()]
    assert not left, f"left over: {left}"


KINDS = {  # how a case is made and checked, how many there are, and the seconds of one at most
    "images": (make_image, check_image, 90_000, 20),
    "models": (make_model, check_model, 9_900, 60),
    "kills": (make_kill, check_kill, 100, 1200),
}


def run_part(kind, seed, numbers, out):
    """Runs some cases of a kind; returns the folders of those that failed."""
    make, check, _, seconds = KINDS[kind]
    failed = []
    for number in numbers:
        folder, failure = Path(out, f"{kind}-{number}"), None
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        case = make(random.Random(f"{kind}-{seed}-{number}"), folder)
        signal.alarm(seconds)  # ends the process, also in native code
        try:
            check(case)
        except (ValueError, OSError, MemoryError) as error:
            if len(str(error).splitlines()) != 1:
                failure = traceback.format_exc()
        except Exception:
            failure = traceback.format_exc()
        signal.alarm(0)
        if failure:
            (folder / "failure.txt").write_text(failure)
            failed.append(str(folder))
        else:
            shutil.rmtree(folder)
    return failed


def limit_memory():
    """Has allocations fail before they take all memory of the machine."""
    if sys.platform == "linux":
        lines = Path("/proc/self/status").read_text().splitlines()
        used = next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmData"))
        most = resource.getrlimit(resource.RLIMIT_DATA)[1]
        resource.setrlimit(resource.RLIMIT_DATA, (used + ROOM, most))


def main(arguments=None):
    parser = Parser(prog="attack", description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}; all")
    parser.add_argument("--cases", type=int, help="of each kind; default: 100,000 in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default="build/attack", help="default: %(default)s")
    options = parser.parse_args(arguments)
    if unknown := set(options.kinds) - set(KINDS):
        parser.error(f"no kind {unknown.pop()}; expected some of {', '.join(KINDS)}")
    failed, context = [], get_context("spawn")
    for kind in options.kinds or KINDS:
        count = KINDS[kind][2] if options.cases is None else options.cases
        size = 1 if kind == "kills" else PART
        parts = [range(n, min(n + size, count)) for n in range(0, count, size)]
        with ProcessPoolExecutor(None, context, limit_memory) as pool:
            run = functools.partial(run_part, kind, options.seed, out=options.out)
            try:
                found = [folder for part in pool.map(run, parts) for folder in part]
            except BrokenProcessPool:
                found = [f"a process crashed or hung; its case is in {options.out}"]
        print(f"{kind}: {count:,} cases, {len(found)} failed", *found, sep="\n  ")
        failed += found
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
