"""Serves a page that classifies pictures and texts in the visitor's browser."""

import base64
import contextlib
import hashlib
import json
import re
import sys
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from keras_gmlp.programs.shared.cli import Program
from keras_gmlp.utils.sources import DEFAULT_BACKBONE, SHIPPED, find_shipped, suggest_shipped

PAGE = Path(__file__).resolve().parents[2] / "apps" / "web"
LITERT = PAGE / "node_modules" / "@litertjs"
TYPES = {  # of the files that are served
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".wasm": "application/wasm",
    ".tflite": "application/octet-stream",
}
HOST = "127.0.0.1"
HOSTS = r"(127\.0\.0\.1|localhost)(:\d+)?"
MODELS = "/models/"  # the URLs of models
HEADERS = {  # WebAssembly requires the first two to share memory between threads
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(self), microphone=(), geolocation=()",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}

USAGE = """\
--port PORT:int=8000  0: any free
--models DIR  folder with .tflite files, or the name of an included model; default: saved_models

Pictures and texts stay in the browser: the page loads only its own files, LiteRT.js and models, all
from this server; its Content-Security-Policy blocks other hosts. Only this machine can reach the
server.

examples:
  apps/serve.py                                   the models in saved_models, on port 8000
  apps/serve.py --port 0                          on any free port
  apps/serve.py --models runs                     the exports of your training runs

A model is a .tflite file in DIR or in one of its folders. The page requires LiteRT.js: `make web`
installs it and starts this program.
exit codes: 0 stopped by Ctrl-C, 1 port in use, or no model or LiteRT.js found, 2 wrong usage
"""


def serve(options):
    server = make_server(options.port, Path(find_shipped(options.models or SHIPPED)))
    with server, contextlib.suppress(KeyboardInterrupt):
        print(f"http://{HOST}:{server.server_port}/  (Ctrl-C stops)", flush=True)
        server.serve_forever()
    return 0


def make_server(port, models):
    """Returns a server that is bound to the port; `serve_forever` starts it."""
    if not (LITERT / "core" / "wasm").is_dir():
        raise ValueError("LiteRT.js is not installed. Run `make web` in a clone of the repository.")
    if not list_models(models):
        advice = f"apps/export.py writes one.{suggest_shipped(models)}"
        raise ValueError(f"{models}: no .tflite file in this folder or its folders; {advice}")
    try:
        return Server(port, models)
    except (OSError, OverflowError) as error:
        raise ValueError(f"port {port}: {error}. Choose another with --port.") from None


def list_models(directory):
    """Returns the .tflite files for the page by name: that of the folder, or folder/file."""
    models = {}
    for path in sorted([*directory.glob("[!.]*.tflite"), *directory.glob("*/[!.]*.tflite")]):
        name = path.relative_to(directory).with_suffix("").as_posix()
        if not re.search(r"_(mediapipe|batch\d+)$", name):
            short = re.sub("/model(_features)?$", "", name)
            # Of both in a folder that with features, unless a file next to it has its name.
            models[name if (directory / f"{short}.tflite").exists() else short] = path
    return models


def describe_models(directory):
    """Returns the page's list, the model to open first: the name, URL, bytes and card of each."""
    models = []
    for name, path in list_models(directory).items():
        with contextlib.suppress(FileNotFoundError):  # deleted meanwhile
            entry = {"name": name, "url": quote(f"{MODELS}{name}.tflite")}
            models.append({**entry, "bytes": path.stat().st_size, "card": read_metadata(path)})

    def rank(model):  # the default or else the most accurate
        card, folder = model["card"], model["name"].split("/")[0]
        accuracy = card.get("test_accuracy") or card.get("test_mean_average_precision") or 0.0
        return not card, folder != DEFAULT_BACKBONE, -accuracy

    return sorted(models, key=rank)


def read_metadata(path):
    """Returns the card without its labels; {} if it is damaged, which the page reports later."""
    from keras_gmlp.utils.card import read_card

    try:
        card = {key: value for key, value in read_card(path).items() if key != "labels"}
        json.dumps(card, allow_nan=False)  # as the page reads it
    except ValueError:
        return {}
    return card


def allow_content():
    """Allows this origin, WebAssembly and the page's import map, identified by its hash."""
    page = (PAGE / "index.html").read_text(encoding="utf-8")
    import_map = re.search(r'<script type="importmap">(.*?)</script>', page, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(import_map.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'self' 'wasm-unsafe-eval' 'sha256-{digest}'; "
        "connect-src 'self'; worker-src 'self'; style-src 'self'; img-src 'self' blob:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


class Server(ThreadingHTTPServer):
    """Answers many visitors at once."""

    request_queue_size = 1024  # connections that wait; a client tries a full queue a second later

    def __init__(self, port, models):
        files = {path.name: path for path in PAGE.iterdir()}
        for path in LITERT.rglob("*"):
            files[f"node_modules/@litertjs/{path.relative_to(LITERT).as_posix()}"] = path
        files = {f"/{name}": path for name, path in files.items() if path.suffix in TYPES}
        self.models, self.files = models, {"/": PAGE / "index.html", **files}  # by URL path
        super().__init__((HOST, port), Handler)

    def handle_error(self, request, client_address):
        if not isinstance(sys.exception(), ConnectionError):  # the visitor closed the page
            super().handle_error(request, client_address)


class Handler(SimpleHTTPRequestHandler):
    """Serves the page's files, the models in a folder and the list of them; nothing else."""

    timeout = 20  # seconds that a connection may be idle
    extensions_map = TYPES

    def parse_request(self):
        """Refuses other hosts, by which a page of another site could read this one."""
        if not super().parse_request():
            return False
        if re.fullmatch(HOSTS, self.headers.get("Host", ""), re.IGNORECASE):
            return True
        self.send_error(HTTPStatus.MISDIRECTED_REQUEST, explain=f"Open the page at {HOST}.")
        return False

    def do_GET(self):
        if urlsplit(self.path).path != "/models.json":
            super().do_GET()
            return
        body = json.dumps(describe_models(self.server.models)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def translate_path(self, path):
        """Returns the file for a URL; for all others a path that does not exist, hence a 404."""
        url = unquote(urlsplit(path).path)
        served = self.server.files
        if url.startswith(MODELS):
            found = list_models(self.server.models)
            served = {f"{MODELS}{name}.tflite": path for name, path in found.items()}
        return str(served.get(url, PAGE / "no such file"))

    def end_headers(self):
        for name, value in {**HEADERS, "Content-Security-Policy": allow_content()}.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, *_):
        """Logs nothing."""


main = Program("serve", __doc__, USAGE, serve)
