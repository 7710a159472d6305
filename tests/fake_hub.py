"""A server on the loopback address that answers the client of the Hugging Face hub."""

import base64
import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

import yaml

COMMIT = "1" * 40


class _Handler(BaseHTTPRequestHandler):
    """Keeps files in `server.repositories`: bytes by path, by the name of the repository."""

    def reply(self, body, code=200, **headers):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(code)
        own = {"Content-Length": len(body), "X-Repo-Commit": COMMIT}
        for name, value in {**own, **headers}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        path = unquote(self.path.partition("?")[0])
        if path.startswith("/api/models/"):
            name = "/".join(path.split("/")[3:5])
            files = self.server.repositories.get(name)
            if files is None:
                self.reply({"error": "Repository not found"}, 404, X_Error_Code="RepoNotFound")
            elif "/tree/" in path:
                self.reply(
                    [
                        {"type": "file", "path": p, "size": len(b), "oid": _digest(b)}
                        for p, b in files.items()
                    ]
                )
            else:
                _, *card = files.get("README.md", b"").decode().split("---\n", 2)
                head = yaml.safe_load(card[0]) if card else None
                siblings = [{"rfilename": path} for path in files]
                found = {"id": name, "sha": COMMIT, "siblings": siblings, "cardData": head}
                self.reply(found)
            return
        name, _, file = path[1:].partition("/resolve/")
        body = self.server.repositories.get(name, {}).get(file.partition("/")[2])
        if body is None:
            self.reply({"error": "Entry not found"}, 404, X_Error_Code="EntryNotFound")
        else:
            self.reply(body, ETag=f'"{_digest(body)}"')

    do_HEAD = do_GET  # noqa: N815

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.tokens.add(self.headers.get("Authorization"))
        name = "/".join(self.path.split("/")[3:5])
        if self.path == "/api/repos/create":
            name = "/".join(json.loads(body)[key] for key in ("organization", "name"))
            self.server.repositories.setdefault(name, {})
            self.reply({"url": f"http://127.0.0.1/{name}", "name": name, "id": name})
        elif self.path == "/api/validate-yaml":
            self.reply({"errors": [], "warnings": []})
        elif "/preupload/" in self.path:
            modes = {"uploadMode": "regular", "shouldIgnore": False, "oid": None}
            files = [{"path": file["path"], **modes} for file in json.loads(body)["files"]]
            self.reply({"files": files})
        else:
            files = self.server.repositories[name]
            for line in map(json.loads, body.splitlines()):
                key, value = line["key"], line["value"]
                if key == "file":
                    files[value["path"]] = base64.b64decode(value["content"])
                elif key == "deletedFile":
                    del files[value["path"]]
            url = f"http://127.0.0.1/{name}/commit/{COMMIT}"
            self.reply({"commitUrl": url, "commitOid": COMMIT})

    def log_message(self, *args):
        pass


def _digest(content):
    return hashlib.sha1(content).hexdigest()


def start_hub():
    """Starts a hub without repositories; returns the server and its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.repositories, server.tokens = {}, set()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_port}"


def stop_hub(server):
    server.shutdown()
    server.server_close()
