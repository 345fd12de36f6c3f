"""The servers of the two tiny language models: vLLM in the environment that runs us, one process each."""

import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx

from hypac_site.supervisor import ServeError, end_with_parent, require_free_port
from routing.demo import llm
from routing.demo.sums import AT_ONCE, CONTEXT

MODELS = Path(llm.__file__).parent / "models"
# Little memory for each, and no look at any hub.
ENVIRONMENT = {"VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
OPTIONS = {"fast": [], "slow": ["--reasoning-parser", "qwen3"]}
START_SECONDS = 300
STOP_SECONDS = 20
SHOWN_LINES = 3


@dataclass
class ModelServer:
    name: str
    host: str
    log: Path
    process: subprocess.Popen[bytes]

    def wait(self) -> None:
        """Return once it answers. Raises ServeError with its last words where it does not."""
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            if self.process.poll() is not None:
                said = self.log.read_text(errors="replace").strip().splitlines()[-SHOWN_LINES:]
                raise ServeError(
                    f"vLLM with the {self.name} model ended while starting; {self.log} has all that it said. "
                    + " | ".join(said)
                )
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"http://{self.host}/health", timeout=2).status_code == 200:
                    return
            time.sleep(0.5)
        raise ServeError(f"vLLM did not answer within {START_SECONDS} s; see {self.log}.")

    def stop(self) -> None:
        """May be called after it was told to, by `process.terminate`, so that several stop side by side."""
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(STOP_SECONDS)
        # Its engine is a child of its own, which a server that did not end in order leaves behind.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@contextlib.contextmanager
def model_servers(hosts: Sequence[str], folder: Path) -> Iterator[list[ModelServer]]:
    """Both side by side, as most of their start is importing; `wait` for each before it is asked.

    `hosts` are host and port, the fast model's first; what they print goes into `folder`. Raises ServeError.
    """
    if importlib.util.find_spec("vllm") is None:
        raise ServeError(
            f"{sys.executable} has no vLLM. Use `make demo-llm`, which sets up its own environment."
        )
    with contextlib.ExitStack() as stack:
        servers = []
        for (name, options), host in zip(OPTIONS.items(), hosts, strict=True):
            address, _, port = host.rpartition(":")
            require_free_port(address, int(port))
            log = folder / f"vllm-{name}.log"
            command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server"]
            command += ["--model", str(MODELS / name), "--served-model-name", name]
            command += ["--host", address, "--port", port, "--dtype", "float32", "--enforce-eager"]
            command += ["--max-model-len", str(CONTEXT), "--max-num-seqs", str(AT_ONCE)]
            command += ["--generation-config", "vllm", *options]
            with open(log, "wb") as output:
                process = subprocess.Popen(
                    command,
                    env=os.environ | ENVIRONMENT,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                    preexec_fn=end_with_parent if sys.platform == "linux" else None,
                )
            servers.append(ModelServer(name, host, log, process))
            stack.callback(servers[-1].stop)
        try:
            yield servers
        finally:
            for server in servers:
                server.process.terminate()
