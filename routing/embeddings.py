"""Embeddings of texts by the server that HYPAC_EMBEDDINGS_URL names, for the loss `cosine_distance`.

The address is the operator's, as losses are: nobody names code or a server for it on a page. It is asked
through the guarded client all the same, so a server in one's own network stands in HYPAC_PRIVATE_HOSTS, too.
"""

import os
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from django.conf import settings

from annotation.outside.net import GuardedClient, NetError

EMBEDDER = "routing.embeddings:embed"
"""The name under which certificates have `embed`."""
BATCH = 64
"""Texts in one request."""
TOTAL_SECONDS = 300.0


def configured() -> bool:
    """Whether this installation names an embedding model."""
    return bool(settings.HYPAC_EMBEDDINGS_URL and settings.HYPAC_EMBEDDINGS_MODEL)


def embed(texts: Sequence[str], *, model: str) -> list[list[float]]:
    """One vector per text, (n, d), by `POST {HYPAC_EMBEDDINGS_URL}/embeddings`, which servers compatible with
    OpenAI's interface answer (`vllm serve`, llama.cpp, ...).

    Raises RuntimeError or NetError saying what the server answered; `cosine_distance` makes a LossError of
    it.
    """
    if not settings.configured:  # routing.core.verify, in a checkout
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hypac_site.settings")
    if not settings.HYPAC_EMBEDDINGS_URL:
        raise RuntimeError("HYPAC_EMBEDDINGS_URL names no server for embeddings")
    vectors: list[list[float]] = []
    for start in range(0, len(texts), BATCH):
        vectors += _asked(list(texts[start : start + BATCH]), model)
    return vectors


def _asked(texts: list[str], model: str) -> list[list[float]]:
    key = settings.HYPAC_EMBEDDINGS_KEY
    answer = _client(os.getpid()).request(
        "POST",
        f"{settings.HYPAC_EMBEDDINGS_URL.rstrip('/')}/embeddings",
        headers={"Authorization": f"Bearer {key}"} if key else {},
        json={"model": model, "input": texts, "encoding_format": "float"},
    )
    if answer.status != 200:
        said = answer.content[:200].decode("utf-8", "replace")
        raise RuntimeError(f"the server for embeddings answered with status {answer.status}: {said}")
    try:
        rows: list[Any] = sorted(answer.json()["data"], key=lambda row: row["index"])
        if [row["index"] for row in rows] != list(range(len(texts))):
            raise ValueError
        return [[float(entry) for entry in row["embedding"]] for row in rows]
    except (KeyError, TypeError, ValueError, NetError):
        raise RuntimeError(
            f"the server for embeddings did not answer with one vector for each of {len(texts)} texts"
        ) from None


@lru_cache(maxsize=1)
def _client(process: int) -> GuardedClient:
    """One client for each process: connections do not survive a fork."""
    return GuardedClient(
        read_timeout=TOTAL_SECONDS, total_timeout=TOTAL_SECONDS, max_bytes=256 * 2**20, max_connections=4
    )
