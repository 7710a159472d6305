#!/usr/bin/env python3
"""Serves a page that classifies pictures in the visitor's own browser."""

import argparse
import base64
import contextlib
import errno
import hashlib
import json
import re
import sys
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from cli import guarded

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "apps" / "web"
LITERT = PAGE / "node_modules" / "@litertjs"
PAGE_TYPES, LITERT_TYPES = (".html", ".css", ".js", ".svg"), (".js", ".wasm")
HOST = "127.0.0.1"
EPILOG = """\
Pictures stay in the browser: the page asks this server for itself, for LiteRT.js and for models,
and its Content-Security-Policy allows no other. Only this machine can reach the server.

examples:
  apps/serve.py                                   the models that come along, on port 8000
  apps/serve.py --port 0                          on any free port
  apps/serve.py --models runs                     the exports of your own training runs

A model is a .tflite file in DIR or in one of its folders. LiteRT.js has to be there:
`make web` installs it and starts this program.
exit codes: 0 stopped by Ctrl-C, 1 port taken, or no model or LiteRT.js found, 2 wrong usage
"""


def parse(arguments):
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--port", type=int, default=8000, help="default: %(default)s; 0: any")
    parser.add_argument(
        "--models",
        type=Path,
        default=ROOT / "saved_models",
        metavar="DIR",
        help="default: saved_models",
    )
    options = parser.parse_args(arguments)
    if not 0 <= options.port <= 65535:
        parser.error(f"--port must be from 0 to 65535; received {options.port}")
    return options


def main(arguments=None):
    options = parse(arguments)
    return guarded("serve", lambda: serve(options))


def serve(options):
    server = make_server(options.port, options.models)
    with server, contextlib.suppress(KeyboardInterrupt):
        print(f"http://{HOST}:{server.server_port}/  (Ctrl-C stops)", flush=True)
        server.serve_forever()
    return 0


def make_server(port, models):
    """A server that is bound and not yet serving.

    Raises:
        ValueError: the port is taken or not allowed, LiteRT.js is not installed, or there is no
            model. One line.
    """
    if not (LITERT / "core" / "wasm").is_dir():
        raise ValueError(
            "LiteRT.js is not installed; run `make web`, or `npm install` in apps/web."
        )
    if not models.is_dir():
        found = "a file" if models.exists() else "no such folder"
        raise ValueError(f"{models}: {found}; expected a folder with .tflite files.")
    if not find_models(models):
        raise ValueError(
            f"{models}: no .tflite file, for one image at once, in this folder or in its folders."
        )
    handler = type("ModelHandler", (Handler,), {"models": models})
    try:
        return ThreadingHTTPServer((HOST, port), handler)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise ValueError(
                f"port {port} is taken; choose another with --port (or make web PORT=8001)."
            ) from None
        raise ValueError(f"port {port} cannot be used: {error.strerror}.") from None


def find_models(directory):
    """The .tflite files by name: that of their folder, or of the file where that is not enough."""
    found = {}
    for path in sorted([*directory.glob("*.tflite"), *directory.glob("*/*.tflite")]):
        # An export that is being written, or one that takes several images at once.
        if path.name.startswith(".") or re.search(r"_batch\d+$", path.stem):
            continue
        name = path.relative_to(directory).with_suffix("").as_posix()
        short = name.removesuffix("/model")
        taken = (directory / f"{short}.tflite").exists()
        found[name if taken else short] = path
    return found


def describe_models(directory):
    """What the page lists: where each is, its size, what its card says.

    Folders with the most accurate models come first, since the page opens with the first model;
    what cannot be read comes last.
    """
    models = [
        {"name": name, "url": quote(model_url(name)), "bytes": path.stat().st_size}
        | {"facts": read_facts(path)}
        for name, path in find_models(directory).items()
    ]

    def folder(model):
        return model["name"].split("/")[0]

    best = {}
    for model in models:
        accuracy = model["facts"].get("test_accuracy") or 0.0  # or a card that says null
        best[folder(model)] = max(accuracy, best.get(folder(model), 0.0))
    return sorted(models, key=lambda model: (not model["facts"], -best[folder(model)]))


def read_facts(path):
    """A card without its labels; of a damaged one nothing, which is told once it is loaded."""
    from keras_gmlp.card import read_card

    with contextlib.suppress(ValueError):
        return {key: value for key, value in read_card(path).items() if key != "labels"}
    return {}


def model_url(name):
    return f"/models/{name}.tflite"


def find_files(models):
    """All that is served, by URL path. What is not in here does not exist for a visitor."""
    served = {f"/{path.name}": path for path in PAGE.iterdir() if path.suffix in PAGE_TYPES}
    for path in LITERT.rglob("*"):
        if path.suffix in LITERT_TYPES:
            served[f"/node_modules/@litertjs/{path.relative_to(LITERT).as_posix()}"] = path
    served |= {model_url(name): path for name, path in find_models(models).items()}
    return {"/": PAGE / "index.html", **served}


def content_security_policy():
    """This origin alone, WebAssembly, and the page's own import map, known by its hash."""
    page = (PAGE / "index.html").read_text(encoding="utf-8")
    import_map = re.search(r'<script type="importmap">(.*?)</script>', page, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(import_map.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'self' 'wasm-unsafe-eval' 'sha256-{digest}'; "
        "connect-src 'self'; worker-src 'self'; style-src 'self'; img-src 'self' blob:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


class Handler(SimpleHTTPRequestHandler):
    """Answers with the files of `find_files` and with the list of models."""

    models = None
    extensions_map = {  # noqa: RUF012 (the name and kind are the base class's)
        ".html": "text/html; charset=utf-8",
        ".css": "text/css; charset=utf-8",
        ".js": "text/javascript; charset=utf-8",
        ".svg": "image/svg+xml",
        ".wasm": "application/wasm",
        ".tflite": "application/octet-stream",
    }

    def do_GET(self):
        with contextlib.suppress(ConnectionError):  # the page was closed meanwhile
            if urlsplit(self.path).path == "/models.json":
                self.send_json(describe_models(self.models))
            else:
                super().do_GET()

    def send_json(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def translate_path(self, path):
        """The file for a URL; a name that is no file, and so a 404, for whatever is not listed."""
        asked = unquote(urlsplit(path).path)
        return str(find_files(self.models).get(asked, PAGE / "no such file"))

    def end_headers(self):
        # The first two let WebAssembly share memory between threads.
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("Content-Security-Policy", content_security_policy())
        self.send_header("Permissions-Policy", "camera=(self), microphone=(), geolocation=()")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def log_message(self, *_):
        """Says nothing: a page that loads is no news."""


if __name__ == "__main__":
    sys.exit(main())
