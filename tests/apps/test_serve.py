"""The server of the page: what it serves and what it refuses, without a browser."""

import base64
import contextlib
import hashlib
import http.client
import json
import re
import socket
import struct

import pytest
from load_app import APPS, load_app
from web_page import serve_models

from keras_gmlp.utils.sources import DEFAULT_BACKBONE

MODELS = APPS.parent / "saved_models"
serve = load_app("serve")


@pytest.fixture(scope="module", autouse=True)
def litert(tmp_path_factory):
    """A stand-in for LiteRT.js, so that these tests need no npm."""
    folder = tmp_path_factory.mktemp("litert")
    (folder / "core" / "wasm").mkdir(parents=True)
    (folder / "core" / "wasm" / "litert.wasm").write_bytes(b"\0asm")
    (folder / "core" / "package.json").write_text("{}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(serve, "LITERT", folder)
        yield


@pytest.fixture(scope="module")
def port():
    with serve_models(MODELS, serve) as port:
        yield port


def get(port, path, method="GET", headers=None):
    """Requests a path unchanged: no client resolves its dots."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    with contextlib.closing(connection):
        connection.request(method, path, headers=headers or {})
        response = connection.getresponse()
        return response.status, response.headers, response.read()


def test_files_and_their_types(port):
    for path, kind in (
        ("/", "text/html; charset=utf-8"),
        ("/main.js?again", "text/javascript; charset=utf-8"),
        ("/style.css", "text/css; charset=utf-8"),
        ("/icon.svg", "image/svg+xml"),
        ("/models.json", "application/json"),
        ("/models/gmlp_n4_32-cifar10.tflite", "application/octet-stream"),
        ("/node_modules/@litertjs/core/wasm/litert.wasm", "application/wasm"),
    ):
        status, headers, body = get(port, path)
        assert (status, headers["Content-Type"]) == (200, kind)
        assert int(headers["Content-Length"]) == len(body) > 0


def test_headers(port):
    (import_map,) = re.findall(rb"<script[^>]*>([^<]+)</script>", get(port, "/")[2])
    digest = base64.b64encode(hashlib.sha256(import_map).digest()).decode()
    for path in ("/", "/models.json", "/nothing"):
        headers = get(port, path)[1]
        assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
        assert headers["Cross-Origin-Embedder-Policy"] == "require-corp"
        assert headers["X-Content-Type-Options"] == "nosniff"
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; ")
        assert f"'sha256-{digest}'" in policy
        assert "http" not in policy
        assert "unsafe-inline" not in policy


def test_other_paths_and_methods_are_refused(port):
    for path in (
        "/nothing",
        "/package.json",
        "/models/",
        "/node_modules/@litertjs/core/package.json",
        "/models/gmlp_n4_32-cifar10/model.keras",
        "/../serve.py",
        "/%2e%2e/serve.py",
        "/models/../../../README.md",
        "/node_modules/@litertjs/../../main.js",
        "/%00",
        str(MODELS / "gmlp_n4_32-cifar10" / "model.tflite"),
    ):
        assert get(port, path)[0] == 404
    assert get(port, "/", "POST")[0] == 501
    assert get(port, "/", "HEAD")[0] == 200


def list_models(port):
    return {model["name"]: model for model in json.loads(get(port, "/models.json")[2])}


def test_list_of_models(port):
    listed = list_models(port)
    assert set(listed) >= {path.parent.name for path in MODELS.glob("*/model.tflite")}
    assert next(iter(listed)) == DEFAULT_BACKBONE  # which the page opens first
    model = listed["gmlp_n4_32-cifar10"]
    assert model["card"]["preset"] == "gmlp_n4_32"
    assert "labels" not in model["card"]
    accuracies = [each["card"].get("test_accuracy", 0) for each in listed.values()][1:]
    assert accuracies == sorted(accuracies, reverse=True)
    assert model["bytes"] == len(get(port, model["url"])[2])


def test_models_change_while_it_runs(tmp_path):
    first, other = tmp_path / "a run ü" / "model.tflite", tmp_path / "b" / "model_features.tflite"
    for path in (first, other, other.with_name("model_mediapipe.tflite")):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"one")
    damaged = (MODELS / "gmlp_n4_32-cifar10" / "model.tflite").read_bytes()[:-1]
    with serve_models(tmp_path, serve) as port:
        (tmp_path / "single.tflite").write_bytes(damaged)
        (tmp_path / ".123.single.tflite").write_bytes(b"half")  # being written
        first.with_name("model_float32.tflite").write_bytes(b"three")
        (tmp_path / "c.tflite").write_bytes(b"four")
        (tmp_path / "c").mkdir()
        (tmp_path / "c" / "model.tflite").write_bytes(b"five")
        listed = list_models(port)
        bodies = {name: get(port, model["url"])[2] for name, model in listed.items()}
        found = {"a run ü": b"one", "a run ü/model_float32": b"three", "b": b"one"}
        assert bodies == {**found, "single": damaged, "c": b"four", "c/model": b"five"}
        assert listed["single"]["card"] == {}
        first.unlink()
        assert get(port, listed["a run ü"]["url"])[0] == 404


def test_other_hosts_are_refused(port):
    for host in ("evil.example", "evil.example:8000", "127.0.0.1.evil.example", ""):
        status, _, body = get(port, "/models.json", headers={"Host": host})
        assert status == 421
        assert b"gmlp" not in body
        assert get(port, "/models.json", headers={"Host": "LOCALHOST:8000"})[0] == 200


def test_visitor_who_leaves_is_no_traceback(port, capfd):
    with socket.create_connection(("127.0.0.1", port)) as visitor:
        visitor.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset
        visitor.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert get(port, "/")[0] == 200
    assert capfd.readouterr().err == ""


def test_what_is_missing_or_taken_is_one_line(capsys, monkeypatch, tmp_path):
    def fails(option, value):
        assert serve.main([option, str(value)]) == 1
        line = capsys.readouterr().err
        assert (line.startswith("serve: "), line.count("\n")) == (True, 1)
        return line

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"port {port}: " in fails("--port", port)
    assert "0-65535" in fails("--port", 65536)
    assert fails("--models", "gmlp_n4_32").strip().endswith("?")  # near names
    monkeypatch.setattr(serve, "LITERT", tmp_path)
    assert "`make web`" in fails("--port", 0)


def test_ctrl_c_stops_it(capsys, monkeypatch):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(serve.ThreadingHTTPServer, "serve_forever", interrupted)
    assert serve.main(["--port", "0"]) == 0
    out, err = capsys.readouterr()
    assert re.match(r"http://127\.0\.0\.1:\d+/ ", out)
    assert err == ""
