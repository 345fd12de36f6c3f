"""The site's web server as a process of its own."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from testbed.servers import _Server, status_of

ROOT = Path(__file__).resolve().parents[1]


class WebServer(_Server):
    """`python` with these arguments, in which "PORT" stands for its port, on this environment (without one on
    that of this process).
    """

    name = "web"

    def __init__(self, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.arguments = arguments
        self.environment = dict(environment or os.environ)

    def command(self) -> list[str]:
        return [sys.executable, *(word.replace("PORT", str(self.port)) for word in self.arguments)]

    def popen_options(self) -> dict[str, Any]:
        own = {"HYPAC_WEB_BIND": f"{self.address}:{self.port}", "PYTHONPATH": str(ROOT)}
        return {"env": self.environment | own}

    def ping(self) -> bool:
        return status_of(f"{self.url()}/healthz") == 200

    def url(self) -> str:
        return f"http://{self.address}:{self.port}"
