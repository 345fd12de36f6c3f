"""Real model servers of the tests' own: vLLM from .venv-llm with the two tiny models of the repository."""

import os
import signal
from pathlib import Path

from testbed import servers

ROOT = Path(__file__).resolve().parents[1]
MODELS = Path(os.environ.get("HYPAC_TEST_LLM_MODELS") or ROOT / "routing" / "demo" / "llm" / "models")
# Of all processes with an engine: little memory, no look at the hub, and no threads that spin while they
# wait for each other over models so small.
ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "OMP_NUM_THREADS": "1",
}
OPTIONS = ("--dtype", "float32", "--max-model-len", "128", "--enforce-eager", "--max-num-seqs", "32")


def llm_python() -> Path | None:
    """The interpreter with vLLM: HYPAC_TEST_LLM_PYTHON, else that of .venv-llm; None where there is none."""
    named = os.environ.get("HYPAC_TEST_LLM_PYTHON")
    python = Path(named) if named else ROOT / ".venv-llm" / "bin" / "python"
    return python if python.exists() else None


def engine_arguments(name: str) -> list[str]:
    """Options of vLLM's commands for one of the models."""
    return ["--model", str(MODELS / name), "--served-model-name", name, *OPTIONS]


class VllmServer(servers._Server):
    """An OpenAI-compatible server of one of the models, on a free port."""

    name = "vllm"
    start_seconds = 900

    def __init__(self, python: Path, model: str, *options: str) -> None:
        super().__init__()
        self.python, self.model, self.options = python, model, options

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def command(self) -> list[str]:
        address = ["--host", "127.0.0.1", "--port", str(self.port)]
        module = ["-m", "vllm.entrypoints.openai.api_server"]
        return [str(self.python), *module, *engine_arguments(self.model), *address, *self.options]

    def popen_options(self) -> dict[str, dict[str, str]]:
        return {"env": {**os.environ, **ENVIRONMENT}}

    def kill(self) -> None:
        # The engine is a child of the server and outlives it.
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        super().kill()

    def ping(self) -> bool:
        return servers.status_of(f"http://127.0.0.1:{self.port}/health", seconds=20) == 200
