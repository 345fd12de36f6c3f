"""A second real model server of the tests' own: that of llama-cpp-python, with the two tiny models."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed import servers
from tests.llm import MODELS

_named = os.environ.get("HYPAC_TEST_LLAMA_CPP", "")
PYTHON = os.path.abspath(_named) if _named else ""  # not resolved, which would lead out of its environment
READS = 256
"""Tokens of a prompt and its answer: twice what the models were trained for, and the least that it takes."""


class LlamaCppServer(servers._Server):
    """An OpenAI-compatible server of one of the models, on a free port, which answers call after call."""

    name = "llama-cpp"

    def __init__(self, model: str, *options: str) -> None:
        super().__init__()
        self.model, self.options = model, options

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def file(self) -> Path:
        return self.folder / f"{self.model}.gguf"

    def start(self) -> None:
        if not self.file.exists():
            program = Path(__file__).with_name("gguf_tiny.py")
            command = [PYTHON, str(program), str(MODELS / self.model), str(self.file)]
            outcome = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            if outcome.returncode != 0:
                raise servers.ServerError(f"no GGUF file was made:\n{outcome.stdout}{outcome.stderr}")
        super().start()

    def command(self) -> list[str]:
        options = {
            "--model": str(self.file),
            "--model_alias": self.model,
            "--host": "127.0.0.1",
            "--port": str(self.port),
            "--n_ctx": str(READS),
            "--n_threads": "1",
            "--verbose": "false",
        }
        return [
            PYTHON,
            "-m",
            "llama_cpp.server",
            *(part for pair in options.items() for part in pair),
            *self.options,
        ]

    def ping(self) -> bool:
        return servers.status_of(f"{self.url}/models", seconds=2) in (200, 401)

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Its connections stay open meanwhile, and nothing comes."""
        if self._process is None:
            raise servers.ServerError(f"{self.name} does not run")
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)
