"""A real Label Studio of the tests' own: on a free loopback port, its data in a temporary folder."""

import os
import time
from pathlib import Path
from typing import Any

import requests

from testbed.servers import _Server

PROGRAM = Path(os.environ.get("HYPAC_TEST_LABEL_STUDIO", ".venv-label-studio/bin/label-studio"))
TOKEN = "0123456789abcdef0123456789abcdef01234567"  # of a server that ends with the test
MANAGER = "manager@example.com"
RUNNING = os.environ.get("HYPAC_TEST_LABEL_STUDIO_URL", "")
"""The address of one that runs already, with this token."""
WAIT = 900


class LabelStudioServer(_Server):
    name = "label-studio"
    start_seconds = WAIT

    def command(self) -> list[str]:
        return [
            *(str(PROGRAM.absolute()), "start", "--no-browser", "--log-level", "WARNING"),
            *("--data-dir", str(self.folder), "--internal-host", "127.0.0.1", "--port", str(self.port)),
            *("--username", MANAGER, "--password", "a password for tests", "--user-token", TOKEN),
            "--enable-legacy-api-token",
        ]

    def popen_options(self) -> dict[str, Any]:
        """Nothing is told to, or asked of, its makers."""
        quiet = {"LATEST_VERSION_CHECK": "false", "COLLECT_ANALYTICS": "false", "SENTRY_DSN": ""}
        return {"env": {**os.environ, **quiet}}

    def ping(self) -> bool:
        try:
            return requests.get(f"{self.url}/health", timeout=5).ok
        except requests.ConnectionError:
            return False

    def start(self) -> None:
        if not RUNNING:
            super().start()

    @property
    def url(self) -> str:
        return RUNNING or f"http://127.0.0.1:{self.port}"

    def call(self, method: str, path: str, **content: Any) -> Any:
        headers = {"Authorization": f"Token {TOKEN}"}
        answer = requests.request(method, f"{self.url}/api/{path}", headers=headers, timeout=120, **content)
        assert answer.ok, f"{method} {path}: {answer.status_code} {answer.text[:2000]}"
        return answer.json() if answer.content else None

    def project(self, title: str, config: str) -> int:
        return int(self.call("POST", "projects/", json={"title": title, "label_config": config})["id"])

    def bring(self, project: int, tasks: list[dict[str, Any]]) -> list[int]:
        """The numbers of the tasks, in their order."""
        made = self.call("POST", f"projects/{project}/import?return_task_ids=true", json=tasks)
        assert made["task_count"] == len(tasks)
        return list(made["task_ids"])

    def annotate(self, task: int, **fields: Any) -> None:
        self.call("POST", f"tasks/{task}/annotations/", json=fields)

    def export(self, project: int) -> list[dict[str, Any]]:
        """A snapshot with whole predictions, not only their numbers as in a plain export."""
        whole = {"only_id": False}
        options = {"predictions": whole, "drafts": whole, "annotations__completed_by": whole}
        made = self.call("POST", f"projects/{project}/exports/", json={"serialization_options": options})
        for _attempt in range(WAIT):
            state = self.call("GET", f"projects/{project}/exports/{made['id']}")["status"]
            if state == "completed":
                break
            assert state != "failed"
            time.sleep(1)
        found = self.call("GET", f"projects/{project}/exports/{made['id']}/download?exportType=JSON")
        return sorted(found, key=lambda task: task["id"])
