"""Odd requests to apps/serve.py; after each, the server must answer a good one within 2 s."""

import contextlib
import http.client
import re
import socket
import threading

from load_app import load_app

from attack.models import TFLITE
from attack.mutations import mutate
from keras_gmlp.utils.files import write_json

REQUESTS = (
    b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /models.json HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /models/gmlp_n4_32-cifar10.tflite HTTP/1.1\r\nHost: localhost\r\n"
    b"Range: bytes=0-9\r\n\r\n",
    b"HEAD /main.js HTTP/1.1\r\nHost: localhost\r\nIf-Modified-Since: now\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n",
    b"GET /models/../../../README.md HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /%2e%2e/serve.py HTTP/1.1\r\nHost: localhost\r\n\r\n",
)


class Clients:
    """Each case is the bytes of a request, sent in pieces and with or without an end."""

    def __init__(self, folder):
        serve = load_app("serve")
        (folder / "core" / "wasm").mkdir(parents=True)  # a stand-in for LiteRT.js
        write_json(folder / "core" / "package.json", {})
        serve.LITERT = folder
        self.server = serve.make_server(0, TFLITE.parents[1])
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def make(self, rng, folder):
        request = rng.choice(REQUESTS)
        request = mutate(request, rng) if rng.random() < 0.95 else request
        (folder / "request").write_bytes(request)
        return request, rng.randrange(len(request) + 1), rng.random() < 0.8

    def check(self, case):
        request, cut, ends = case
        address = ("127.0.0.1", self.server.server_port)
        with socket.create_connection(address, 5) as client, contextlib.suppress(ConnectionError):
            for piece in (request[:cut], request[cut:]):
                client.sendall(piece)
            if ends:
                client.shutdown(socket.SHUT_WR)
                with client.makefile("rb") as answer:
                    head = answer.read(4096)
                # HTTP/0.9 answers without a head.
                if re.match(
                    rb"HTTP/1.[01] (?!(200|206|304|400|404|405|408|414|421|431|50[15]) )", head
                ):
                    raise AssertionError(f"unexpected answer: {head[:200]}")
                assert b"keras_gmlp holds" not in head, "served a file outside of the page"
        connection = http.client.HTTPConnection(*address, timeout=2)
        with contextlib.closing(connection):
            connection.request("GET", "/index.html")
            assert connection.getresponse().status == 200
