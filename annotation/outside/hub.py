"""Data sets on the Hugging Face Hub, or on a server that speaks its API (HYPAC_HUB_ENDPOINT): looking,
reading files, writing several as one commit. It has what `annotation.outside.buckets.Bucket` has for readers.

That server is the operator's choice, no address that people enter: the library asks it and where it leads.
"""

import errno
import hashlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils.translation import gettext_noop

from annotation import failures
from annotation.common.files import BLOCK
from annotation.common.own_folders import OwnFolder
from annotation.common.storage import StorageError
from annotation.errors import ConflictError, HypacError, InputError
from annotation.outside.buckets import (
    CHANGED_MEANWHILE,
    LIST_SECONDS,
    NO_SUCH_OBJECT,
    ObjectInfo,
    checked_key,
    deadline,
    unreadable,
)

CONNECT_SECONDS, SILENT_SECONDS = 5.0, 60.0
"""So long the server may take for a connection, and be silent; the library tries six times."""

MAIN = "main"

SWITCHED_OFF = failures.register(
    "hub_off",
    gettext_noop(
        "This server asks no Hub: whoever runs it has set no HYPAC_HUB_ENDPOINT. Have them set it, or delete "
        "the connection."
    ),
)
TOKEN_REFUSED = failures.register(
    "hub_refused_token",
    gettext_noop("The Hub refused this (%(said)s): the token is wrong, or it may not do it."),
)
NO_DATA_SET = failures.register(
    "hub_lacks_it",
    gettext_noop("The Hub has no such data set, or shows it to others only: check its name and token."),
)
NO_BRANCH = failures.register("hub_lacks_branch", gettext_noop("The data set has no branch “%(branch)s”."))
NOT_NOW = failures.register("hub_not_now", gettext_noop("The Hub could not do this now (%(said)s)."))
NAME_TOO_LONG = failures.register(
    "hub_name_too_long",
    gettext_noop("The name of this file is too long for this server. Give it a shorter one."),
)
REFUSED = failures.register("hub_refused", gettext_noop("The Hub refused this (%(said)s)."))


@dataclass(frozen=True)
class DataSet:
    """`repo` is its name there, owner/name; `branch` may be any revision for whoever reads."""

    repo: str
    branch: str
    token: str = field(default="", repr=False)


class Repository:
    """All methods raise HypacError: InputError where asking again does not help, and one that is not
    permanent where it may. Nothing that the server says is repeated but the number of its answer.
    """

    def __init__(self, data_set: DataSet) -> None:
        if not settings.HYPAC_HUB_ENDPOINT:
            raise SWITCHED_OFF.error(raised_as=InputError, where="connection")
        self._at = data_set
        self._named = {"repo_id": data_set.repo, "repo_type": "dataset", "revision": data_set.branch}
        # False: no other token that may lie on this machine.
        self._token: str | bool = data_set.token or False
        self._api = _library().HfApi(
            endpoint=settings.HYPAC_HUB_ENDPOINT, token=self._token, library_name="hypac"
        )

    def __enter__(self) -> "Repository":
        return self

    def __exit__(self, *_: object) -> None:
        """The library keeps its connections for all."""

    def list_objects(
        self, prefix: str, *, at_most: int | None = None, seconds: float = LIST_SECONDS
    ) -> Iterator[ObjectInfo]:
        """The files of this folder, "" for all, and of those in it."""
        in_time = deadline(seconds)
        folder, count = prefix.rstrip("/"), 0
        listed = self._api.list_repo_tree(path_in_repo=folder or None, recursive=True, **self._named)
        while True:
            in_time()
            with _said(self._at):
                try:
                    entry = next(listed, None)
                except _library().errors.RemoteEntryNotFoundError:
                    return  # there is no such folder
            if entry is None or (at_most is not None and count >= at_most):
                return
            if (file := _found(entry)) is not None:
                count += 1
                yield file

    def head(self, key: str) -> ObjectInfo | None:
        """One file; None where there is none."""
        with _said(self._at):
            entries = self._api.get_paths_info(paths=[checked_key(key)], **self._named)
        return next((file for entry in entries if (file := _found(entry)) and file.key == key), None)

    def chunks(self, found: ObjectInfo) -> Iterator[bytes]:
        """The content, as it was when it was found: raises ConflictError where it is changed meanwhile."""
        with OwnFolder("hub") as folder:
            with _said(self._at):
                path = _library().hf_hub_download(
                    filename=checked_key(found.key),
                    local_dir=folder,
                    endpoint=settings.HYPAC_HUB_ENDPOINT,
                    token=self._token,
                    library_name="hypac",
                    **self._named,
                )
            if not has_content(Path(path), found):
                raise CHANGED_MEANWHILE.error(raised_as=ConflictError, where="key")
            with open(path, "rb") as content:
                while block := content.read(BLOCK):
                    yield block

    def revision(self) -> str:
        """What the branch is at, as Git names it; "" where nothing was ever written into it."""
        with _said(self._at):
            return str(self._api.dataset_info(self._at.repo, revision=self._at.branch).sha or "")

    def make(self) -> None:
        """Make the data set, which is shown to nobody else then, and a branch of it that is not `main`."""
        with _said(self._at):
            self._api.create_repo(self._at.repo, repo_type="dataset", private=True, exist_ok=True)
            if self._at.branch != MAIN:
                self._api.create_branch(
                    self._at.repo, branch=self._at.branch, repo_type="dataset", exist_ok=True
                )

    def commit(
        self, files: Mapping[str, Path], *, gone: Collection[str], message: str, after: str = ""
    ) -> str:
        """Write these files, and remove those that are gone, as one commit: all of it is there, or nothing.
        What is there with the same content is not sent again. Where the branch is not at the revision `after`
        any more nothing is written, and the error is not permanent. Returns the address of the commit.
        """
        library = _library()
        operations: list[Any] = [
            library.CommitOperationAdd(path_in_repo=checked_key(key), path_or_fileobj=path)
            for key, path in files.items()
        ]
        operations += [library.CommitOperationDelete(path_in_repo=key) for key in gone]
        with _said(self._at):
            made = self._api.create_commit(
                operations=operations, commit_message=message, parent_commit=after or None, **self._named
            )
        return str(made.commit_url)


def has_content(path: Path, found: ObjectInfo) -> bool:
    """Whether a file of this machine has the size and content of one that was found: its `etag` is the
    SHA-256 of a large file, of a small one what Git names it by.
    """
    size = path.stat().st_size
    if size != found.size:
        return False
    large = hashlib.sha256()
    small = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)  # as Git names contents
    with open(path, "rb") as content:
        while block := content.read(BLOCK):
            large.update(block)
            small.update(block)
    return found.etag in (large.hexdigest(), small.hexdigest())


def _found(entry: Any) -> ObjectInfo | None:
    """None for a folder."""
    if not hasattr(entry, "blob_id"):
        return None
    if type(entry.size) is not int or entry.size < 0:
        raise unreadable()
    sha256 = entry.lfs.sha256 if entry.lfs else ""
    return ObjectInfo(str(entry.path), entry.size, sha256 or str(entry.blob_id), sha256)


@cache
def _library() -> Any:
    """The library, which from then on tells nobody what else is installed here, and has no transfer of its
    own beside HTTP. Imported where it is used: it takes its time.
    """
    import huggingface_hub
    from huggingface_hub import constants, errors
    from huggingface_hub.utils.tqdm import disable_progress_bars

    constants.HF_HUB_DISABLE_TELEMETRY = True
    constants.HF_HUB_DISABLE_XET = True
    disable_progress_bars()
    huggingface_hub.set_client_factory(_client)
    assert errors is huggingface_hub.errors  # noqa: S101 - it is loaded as an attribute
    return huggingface_hub


def _client() -> Any:
    """The library's own, which would wait for ever, and sends the token to hosts of huggingface.co, too,
    where another server leads there.
    """
    import httpx2
    from huggingface_hub.utils import _http

    client = _http.default_client_factory()
    client.timeout = httpx2.Timeout(SILENT_SECONDS, connect=CONNECT_SECONDS)
    hooks = client.event_hooks
    client.event_hooks = {**hooks, "request": [*hooks["request"], _without_token_elsewhere]}
    return client


def _without_token_elsewhere(request: Any) -> None:
    """Asked of each request, also where an answer led to it: the token is for one server alone."""
    import httpx2

    url, own = request.url, httpx2.URL(settings.HYPAC_HUB_ENDPOINT)
    if (url.scheme, url.host, url.port) != (own.scheme, own.host, own.port):
        request.headers.pop("authorization", None)


@contextmanager
def _said(data_set: DataSet) -> Iterator[None]:
    """Raise what the library raises as errors of ours."""
    import httpx2

    errors = _library().errors
    try:
        yield
    except HypacError:
        raise
    except (errors.GatedRepoError, errors.DisabledRepoError):
        raise _refusal(TOKEN_REFUSED, said="403") from None
    except errors.RevisionNotFoundError:
        raise _refusal(NO_BRANCH, branch=data_set.branch) from None
    except errors.RepositoryNotFoundError:
        raise _refusal(NO_DATA_SET) from None
    except errors.RemoteEntryNotFoundError:
        raise NO_SUCH_OBJECT.error(raised_as=InputError, where="connection", said="404") from None
    except errors.HfHubHTTPError as error:
        raise _of_status(getattr(error.response, "status_code", 0)) from None
    except errors.HFValidationError:
        raise _refusal(NO_DATA_SET) from None
    except errors.LocalEntryNotFoundError as error:
        status = getattr(getattr(error.__cause__, "response", None), "status_code", 0)
        raise _of_status(status) from None
    except (httpx2.HTTPError, httpx2.InvalidURL, errors.FileMetadataError, ConnectionError, TimeoutError):
        raise _of_status(0) from None
    except OSError as error:  # of this machine, on whose disk the library works
        if error.errno == errno.ENAMETOOLONG:
            raise NAME_TOO_LONG.error(raised_as=InputError, where="key") from None
        raise StorageError(error.strerror or type(error).__name__) from error
    except (ValueError, KeyError, TypeError, AttributeError, RuntimeError):
        raise unreadable() from None  # what came is not what the library reads


def _of_status(status: int) -> HypacError:
    """0 is no answer."""
    if status in (401, 403):
        return _refusal(TOKEN_REFUSED, said=str(status))
    if not status or status in (408, 409, 412, 429) or status >= 500:
        said = str(status or "no answer")
        return NOT_NOW.error(raised_as=HypacError, where="connection", permanent=False, said=said)
    return _refusal(REFUSED, said=str(status))


def _refusal(why: failures.Failure, **params: Any) -> HypacError:
    return why.error(raised_as=InputError, where="connection", **params)
