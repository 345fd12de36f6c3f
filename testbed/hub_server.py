"""A server that speaks the API of the Hugging Face Hub as far as `huggingface_hub` asks it about data sets:
trees, files, commits, large files. It keeps everything in memory, and forgets it when it stops.
"""

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import yaml

TOKEN = "hf_token_of_tests"
# What is larger is sent beside the commit, as the Hub has it for what is no text.
LARGE = 1_000


class Hub:
    """Its data sets: name -> path -> content, a branch under name@branch. `private` ones are shown to the
    token alone; `asked` are the requests, (method, path, headers); `fails` is how often the next requests are
    answered by 503.
    """

    def __init__(self) -> None:
        self.data_sets: dict[str, dict[str, bytes]] = {}
        self.private: set[str] = set()
        self.commits: list[tuple[str, str, list[str]]] = []
        self.large: dict[str, bytes] = {}
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        self.fails = 0
        self.page = 1000
        self.url = ""

    def add(self, name: str, **files: bytes) -> dict[str, bytes]:
        return self.data_sets.setdefault(name, dict(files))


def blob(content: bytes) -> str:
    """As Git names a content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def entry(path: str, content: bytes) -> dict[str, Any]:
    told: dict[str, Any] = {"type": "file", "path": path, "size": len(content), "oid": blob(content)}
    if len(content) > LARGE:
        told["lfs"] = {"oid": sha256(content), "size": len(content), "pointerSize": 130}
    return told


class Handler(BaseHTTPRequestHandler):
    hub: Hub

    def log_message(self, *args: Any) -> None:
        pass

    def answer(self, status: int, body: Any = b"", **headers: str) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def handle_any(self) -> None:
        hub, path = self.hub, urlsplit(self.path).path
        hub.asked.append((self.command, self.path, dict(self.headers)))
        body = self.body()
        if hub.fails:
            hub.fails -= 1
            self.answer(503)
            return
        for pattern, method, does in ROUTES:
            if method == self.command and (found := re.fullmatch(pattern, path)):
                named = {name: unquote(value) for name, value in found.groupdict("").items()}
                if "repo" in named and (refused := self.refused(named)):
                    self.answer(refused[0], b"", X_Error_Code=refused[1])
                    return
                does(self, body, **named)
                return
        self.answer(404)

    do_GET = do_HEAD = do_POST = do_PUT = handle_any

    def is_known(self) -> bool:
        return self.headers.get("Authorization") == f"Bearer {TOKEN}"

    def refused(self, named: dict[str, str]) -> tuple[int, str] | None:
        repo, revision = named["repo"], named.get("revision", "main")
        if repo not in self.hub.data_sets or (repo in self.hub.private and not self.is_known()):
            return (404, "RepoNotFound") if self.is_known() else (401, "RepoNotFound")
        if revision != "main" and f"{repo}@{revision}" not in self.hub.data_sets:
            return 404, "RevisionNotFound"
        if self.command in ("POST", "PUT") and "paths-info" not in self.path and not self.is_known():
            return 403, ""
        return None

    def files(self, repo: str, revision: str) -> dict[str, bytes]:
        return self.hub.data_sets[repo if revision == "main" else f"{repo}@{revision}"]

    def branch(self, body: bytes, repo: str, name: str) -> None:
        """Begins with what is on `main`."""
        branch = f"{repo}@{name}"
        is_new = branch not in self.hub.data_sets
        self.hub.add(branch, **self.hub.data_sets[repo])
        self.answer(200 if is_new else 409)

    def tree(self, body: bytes, repo: str, revision: str, folder: str = "") -> None:
        files, below = self.files(repo, revision), f"{folder}/" if folder else ""
        paths = sorted(path for path in files if path.startswith(below))
        if folder and not paths:
            self.answer(404, b"", X_Error_Code="EntryNotFound")
            return
        start = int((re.search(r"cursor=(\d+)", self.path) or [0, "0"])[1])
        page = paths[start : start + self.hub.page]
        folders = [{"type": "directory", "path": "data", "oid": "0" * 40}] if start == 0 else []
        headers = {}
        if start + self.hub.page < len(paths):
            address = f"{self.hub.url}{urlsplit(self.path).path}?recursive=True&cursor={start + len(page)}"
            headers["Link"] = f'<{address}>; rel="next"'
        self.answer(200, folders + [entry(path, files[path]) for path in page], **headers)

    def paths_info(self, body: bytes, repo: str, revision: str) -> None:
        files = self.files(repo, revision)
        asked = parse_qs(body.decode())["paths"]  # a form
        self.answer(200, [entry(path, files[path]) for path in asked if path in files])

    def resolve(self, body: bytes, repo: str, revision: str, path: str) -> None:
        content = self.files(repo, revision).get(path)
        if content is None:
            self.answer(404, b"", X_Error_Code="EntryNotFound")
            return
        tag = sha256(content) if len(content) > LARGE else blob(content)
        self.answer(200, content, ETag=f'"{tag}"', X_Repo_Commit="c" * 40)

    def create(self, body: bytes) -> None:
        asked = json.loads(body)
        name = "/".join(filter(None, [asked.get("organization"), asked["name"]]))
        if not self.is_known():
            self.answer(401)
        elif name in self.hub.data_sets:
            told = {
                "error": "You already created this dataset repo",
                "url": f"{self.hub.url}/datasets/{name}",
            }
            self.answer(409, told)
        else:
            self.hub.add(name)
            if asked.get("private") or asked.get("visibility") == "private":
                self.hub.private.add(name)
            self.answer(200, {"url": f"{self.hub.url}/datasets/{name}", "name": name})

    def check_card(self, body: bytes) -> None:
        """Before a commit the library has the head of a README.md checked."""
        head = json.loads(body)["content"].split("---\n")
        known = yaml.safe_load(head[1]) if len(head) > 2 else None
        errors = [] if isinstance(known, dict) else [{"message": "no metadata"}]
        self.answer(400 if errors else 200, {"errors": errors, "warnings": []})

    def preupload(self, body: bytes, repo: str, revision: str) -> None:
        files = self.files(repo, revision)
        told = []
        for asked in json.loads(body)["files"]:
            is_large = asked["size"] > LARGE
            known = files.get(asked["path"])
            oid = None if known is None else sha256(known) if is_large else blob(known)
            mode = "lfs" if is_large else "regular"
            told.append({"path": asked["path"], "uploadMode": mode, "shouldIgnore": False, "oid": oid})
        self.answer(200, {"files": told})

    def batch(self, body: bytes, repo: str) -> None:
        objects = []
        for asked in json.loads(body)["objects"]:
            told: dict[str, Any] = {"oid": asked["oid"], "size": asked["size"]}
            if asked["oid"] not in self.hub.large:
                told["actions"] = {"upload": {"href": f"{self.hub.url}/large/{asked['oid']}", "header": {}}}
            objects.append(told)
        self.answer(200, {"transfer": "basic", "objects": objects})

    def large(self, body: bytes, oid: str) -> None:
        if sha256(body) != oid:
            self.answer(400)
            return
        self.hub.large[oid] = body
        self.answer(200)

    def commit(self, body: bytes, repo: str, revision: str) -> None:
        files, changed = dict(self.files(repo, revision)), []
        summary = ""
        for line in map(json.loads, body.splitlines()):
            value = line["value"]
            if line["key"] == "header":
                summary = value["summary"]
                if value.get("parentCommit") not in (None, f"{len(self.hub.commits):040x}"):
                    self.answer(412)
                    return
                continue
            changed.append(value["path"])
            if line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                files[value["path"]] = self.hub.large[value["oid"]]
            else:
                files.pop(value["path"], None)
        self.hub.data_sets[repo if revision == "main" else f"{repo}@{revision}"] = files
        self.hub.commits.append((repo, summary, changed))
        number = f"{len(self.hub.commits):040x}"
        url = f"{self.hub.url}/datasets/{repo}/commit/{number}"
        self.answer(200, {"commitUrl": url, "commitOid": number, "pullRequestUrl": None, "success": True})

    def info(self, body: bytes, repo: str, revision: str = "main") -> None:
        self.answer(
            200, {"id": repo, "sha": f"{len(self.hub.commits):040x}", "siblings": [], "private": False}
        )


_REPO = r"(?P<repo>[^/]+/[^/]+)"
_AT = rf"/api/datasets/{_REPO}"
ROUTES: list[tuple[str, str, Any]] = [
    (rf"{_AT}/tree/(?P<revision>[^/]+)(?:/(?P<folder>.+))?", "GET", Handler.tree),
    (rf"{_AT}/paths-info/(?P<revision>[^/]+)", "POST", Handler.paths_info),
    (rf"/datasets/{_REPO}/resolve/(?P<revision>[^/]+)/(?P<path>.+)", "GET", Handler.resolve),
    (rf"/datasets/{_REPO}/resolve/(?P<revision>[^/]+)/(?P<path>.+)", "HEAD", Handler.resolve),
    (r"/api/repos/create", "POST", Handler.create),
    (r"/api/validate-yaml", "POST", Handler.check_card),
    (rf"{_AT}/preupload/(?P<revision>[^/]+)", "POST", Handler.preupload),
    (rf"/datasets/{_REPO}\.git/info/lfs/objects/batch", "POST", Handler.batch),
    (r"/large/(?P<oid>[0-9a-f]{64})", "PUT", Handler.large),
    (rf"{_AT}/commit/(?P<revision>[^/]+)", "POST", Handler.commit),
    (rf"{_AT}/branch/(?P<name>[^/]+)", "POST", Handler.branch),
    (rf"{_AT}/revision/(?P<revision>[^/]+)", "GET", Handler.info),
    (_AT, "GET", Handler.info),
]  # fmt: skip


@contextmanager
def running_hub() -> Iterator[Hub]:
    hub = Hub()
    handler = type("HandlerOf", (Handler,), {"hub": hub})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        hub.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield hub
        finally:
            server.shutdown()
            thread.join()
