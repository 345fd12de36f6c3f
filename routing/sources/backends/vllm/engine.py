"""The engine of this process: one model, kept warm from job to job.

vLLM is imported where it is first needed: it takes seconds, and a web server does not have it.
"""

import atexit
import contextlib
import gc
import logging
import os
import threading
import time
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from queue import Empty, SimpleQueue
from typing import Any

from django.utils.translation import gettext_noop

from annotation import failures
from routing.sources.backends.base import BackendError, named

log = logging.getLogger(__name__)

QUIET = {"VLLM_NO_USAGE_STATS": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
"""Without it vLLM tells its makers of every engine that starts."""

MISSING = failures.register(
    "vllm_missing",
    gettext_noop(
        "vLLM is not installed in this process. Install requirements-gpu.txt and start a worker for the "
        "queue `gpu` with it (docs/backends.md)."
    ),
)
NOT_LOADED = failures.register(
    "vllm_not_loaded",
    gettext_noop(
        "vLLM could not load the model (%(error)s). The worker's log says more; less memory is taken with a "
        "smaller max_model_len."
    ),
)
ENDED = failures.register("vllm_ended", gettext_noop("The engine ended (%(error)s). A new one is started."))

CLOSE_SECONDS = 60.0


@dataclass(frozen=True)
class EngineSettings:
    """What an engine is made with; a source with other settings needs another engine."""

    path: str
    revision: str
    identity: str
    dtype: str
    max_model_len: int | None
    gpu_memory_utilization: float
    max_num_seqs: int


@dataclass(frozen=True)
class Finished:
    """One request that the engine has done: its outputs in vLLM's form, by index; or why it was refused."""

    key: str
    outputs: Sequence[Any]
    refused: str = ""


class Engine:
    """A vLLM engine in a thread of this process, so that it goes on while answers are being stored, and ends
    with the process however that ends. For one caller at a time.
    """

    def __init__(self, wanted: EngineSettings) -> None:
        if find_spec("vllm") is None:
            raise MISSING.error(raised_as=BackendError)
        # By default the engine is a child process, which outlives a worker that is killed, with all its
        # memory on the GPU.
        os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
        self.settings = wanted
        self._inbox: SimpleQueue[tuple[str, Any]] = SimpleQueue()
        self._outbox: SimpleQueue[Finished | Exception | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="vllm-engine", daemon=True)
        self._thread.start()
        if (failure := self._outbox.get()) is not None:
            raise NOT_LOADED.error(raised_as=BackendError, error=named(failure, 570))

    def add(self, key: str, prompt: Sequence[int], params: Mapping[str, Any]) -> None:
        """Queue one request: the ids of its prompt's tokens, and what differs from the SamplingParams of the
        model's own generation_config.json.
        """
        self._inbox.put(("add", (key, list(prompt), dict(params))))

    def take(self, timeout: float | None = None) -> Finished | None:
        """The next request that is done; None where none is within `timeout` seconds. Raises BackendError
        where the engine has ended.
        """
        try:
            found = (
                self._outbox.get(timeout=timeout)
                if timeout is None or timeout > 0
                else self._outbox.get_nowait()
            )
        except Empty:
            return None
        if isinstance(found, Exception):
            drop(self)
            raise ENDED.error(raised_as=BackendError, permanent=False, error=named(found, 380))
        return found

    def abort(self, keys: Sequence[str]) -> None:
        self._inbox.put(("abort", list(keys)))

    def close(self) -> None:
        """End it and give its memory back."""
        self._inbox.put(("close", None))
        self._thread.join(CLOSE_SECONDS)

    def _work(self) -> None:
        try:
            self._load()
            self._outbox.put(None)
            while True:
                while not (self._engine.has_unfinished_requests() and self._inbox.empty()):
                    what, content = self._inbox.get()
                    if what == "close":
                        return
                    if what == "add":
                        self._add(*content)
                    else:
                        self._engine.abort_request(content)
                for one in self._engine.step():
                    if one.finished:
                        self._outbox.put(Finished(one.request_id, one.outputs))
        except BaseException as error:
            log.exception("The engine ended")
            self._outbox.put(error if isinstance(error, Exception) else RuntimeError(repr(error)))
        finally:
            self._unload()

    def _load(self) -> None:
        os.environ.update({name: value for name, value in QUIET.items() if name not in os.environ})

        import vllm

        began = time.monotonic()
        self._hooks_before = set(_hooks_of_compiled_models())
        llm = vllm.LLM(
            model=self.settings.path,
            revision=self.settings.revision or None,
            tokenizer_revision=self.settings.revision or None,
            dtype=self.settings.dtype,
            max_model_len=self.settings.max_model_len,
            gpu_memory_utilization=self.settings.gpu_memory_utilization,
            max_num_seqs=self.settings.max_num_seqs,
            distributed_executor_backend="uni",
            trust_remote_code=False,  # code that comes with a model is never run
        )
        self._llm, self._engine = llm, llm.llm_engine
        self.tokenizer = llm.get_tokenizer()
        config = self._engine.model_config
        self.max_model_len = int(config.max_model_len)
        self._own_defaults = dict(config.get_diff_sampling_param())
        own = config.try_get_generation_config().get("eos_token_id")
        self.end_tokens = frozenset(_ids(own) | _ids(self.tokenizer.eos_token_id))
        log.info(
            "vLLM %s loaded %s in %.0f s", vllm.__version__, self.settings.path, time.monotonic() - began
        )

    def _add(self, key: str, prompt: list[int], params: dict[str, Any]) -> None:
        from vllm import SamplingParams
        from vllm.exceptions import VLLMClientError
        from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams

        arguments = {**self._own_defaults, **params}
        try:
            if structured := arguments.pop("structured_outputs", None):
                arguments["structured_outputs"] = StructuredOutputsParams(**structured)
            chosen = SamplingParams(output_kind=RequestOutputKind.FINAL_ONLY, **arguments)
            self._engine.add_request(key, {"prompt_token_ids": prompt}, chosen)
        except (VLLMClientError, ValueError) as error:
            self._outbox.put(Finished(key, (), str(error)))

    def _unload(self) -> None:
        with contextlib.suppress(Exception):
            self._llm.apply_model(_drop_weights)
        with contextlib.suppress(Exception):
            self._engine.engine_core.shutdown()
        with contextlib.suppress(Exception):
            hooks = _hooks_of_compiled_models()
            for key in set(hooks) - self._hooks_before:
                del hooks[key]
        self._llm = self._engine = None
        gc.collect()
        with contextlib.suppress(Exception):
            import torch

            torch.cuda.empty_cache()


def _hooks_of_compiled_models() -> MutableMapping[int, Any]:
    """vLLM has torch call each compiled model, and never takes that back: torch then holds the model with its
    graphs and weights for good, and a second model finds no room. Empty where torch has no such list.
    """
    try:
        from torch._dynamo import convert_frame

        found: MutableMapping[int, Any] = convert_frame._bytecode_hooks
    except (ImportError, AttributeError):
        return {}
    return found


def _drop_weights(model: Any) -> None:
    """Whoever else holds the model, its weights are gone."""
    import torch

    for tensor in [*model.parameters(), *model.buffers()]:
        tensor.data = torch.empty(0, dtype=tensor.dtype, device=tensor.device)


_lock = threading.Lock()
_current: Engine | None = None


@contextlib.contextmanager
def engine_for(wanted: EngineSettings) -> Iterator[Engine]:
    """The engine of this process, held by one caller at a time. Another model's closes the one before.

    Raises BackendError where vLLM is not installed or cannot load the model.
    """
    global _current
    with _lock:
        if _current is None or _current.settings != wanted:
            if _current is not None:
                log.info("Closing the engine of %s", _current.settings.path)
                _current.close()
                _current = None
            _current = Engine(wanted)
        yield _current


@atexit.register
def close_current() -> None:
    """End the engine before the interpreter does: its threads must not outlive what they use."""
    if _current is not None:
        drop(_current)


def drop(engine: Engine) -> None:
    """Close an engine, so that the next caller starts another."""
    global _current
    if _current is engine:
        _current = None
        engine.close()


def _ids(value: Any) -> set[int]:
    return set(value) if isinstance(value, list | set | tuple) else set() if value is None else {int(value)}
