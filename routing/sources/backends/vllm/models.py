"""Which model files a source may name, and what they are known by.

A name is that of a folder in HYPAC_VLLM_MODELS, put there by whoever runs the server; or, with a slash in it,
that of a model on the Hugging Face hub which HYPAC_VLLM_HUB allows, at one commit. No path is ever taken from
a form, and code that comes with a model is never run.
"""

import hashlib
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

from django.conf import settings
from django.utils.translation import gettext as _, gettext_noop

from annotation import failures
from annotation.errors import InputError
from routing.sources.backends.base import BackendError, digest

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}\Z")
HUB_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,95}/[A-Za-z0-9][A-Za-z0-9_.-]{0,95}\Z")
COMMIT = re.compile(r"[0-9a-f]{40}\Z")
# Files of a model that no answer depends on.
APART = re.compile(r"(?i)(readme.*|licen[cs]e.*|notice.*|.*\.md|\..*)\Z")

NO_SUCH_MODEL = failures.register(
    "no_such_vllm_model",
    gettext_noop("There is no model %(name)r in the server's folder HYPAC_VLLM_MODELS; there is: %(known)s."),
)
NONE_YET, NONE = gettext_noop("none yet"), gettext_noop("none")
NOT_ALLOWED = failures.register(
    "model_not_allowed",
    gettext_noop("This server may not fetch %(name)r from the hub; its HYPAC_VLLM_HUB allows: %(known)s."),
)
UNREADABLE = failures.register(
    "vllm_files_unreadable",
    gettext_noop("The files of the model %(folder)r cannot be read: %(strerror)s."),
)


@dataclass(frozen=True)
class ModelFiles:
    """`path` is what the engine is given, `revision` the commit on the hub, "" of a folder."""

    name: str
    path: str
    revision: str = ""

    def identity(self) -> str:
        """What the files are: the commit on the hub, or the SHA-256 of the folder's files.

        Raises BackendError where the folder cannot be read.
        """
        return self.revision or folder_digest(Path(self.path))


def available_models() -> list[str]:
    """Names of the folders that can be chosen: those that hold a config.json."""
    folder = Path(settings.HYPAC_VLLM_MODELS)
    return sorted(file.parent.name for file in folder.glob("*/config.json") if NAME.match(file.parent.name))


def model_files(name: str, revision: str) -> ModelFiles:
    """Raises InputError, its `where` naming the param, where there is no such model or it is not allowed."""
    if "/" in name:
        return _on_the_hub(name, revision)
    if revision:
        raise InputError(
            _("Only a model of the hub has a revision; a folder is known by its files."), where="revision"
        )
    # The name may only ever mean a folder in that folder: no separators, no leading dot.
    if not NAME.match(name) or name not in available_models():
        known = ", ".join(available_models()) or failures.term(NONE_YET)
        raise NO_SUCH_MODEL.error(raised_as=InputError, where="model", name=name[:100], known=known)
    return ModelFiles(name, str(Path(settings.HYPAC_VLLM_MODELS) / name))


def _on_the_hub(name: str, revision: str) -> ModelFiles:
    allowed = settings.HYPAC_VLLM_HUB
    if not HUB_NAME.match(name) or not any(fnmatchcase(name, pattern) for pattern in allowed):
        known = ", ".join(allowed) or failures.term(NONE)
        raise NOT_ALLOWED.error(raised_as=InputError, where="model", name=name[:100], known=known)
    if not COMMIT.match(revision):
        raise InputError(
            _("Name the commit on the hub (40 hexadecimal digits): a branch may change under a run."),
            where="revision",
        )
    return ModelFiles(name, name, revision)


def folder_digest(folder: Path) -> str:
    """SHA-256 over the names and contents of the model's files. A file is read once unless it is touched."""
    try:
        files = sorted(file for file in folder.iterdir() if file.is_file() and not APART.match(file.name))
        parts = {file.name: _file_digest(file, *_touched(file)) for file in files}
    except OSError as error:
        raise UNREADABLE.error(raised_as=BackendError, folder=folder.name, strerror=error.strerror) from error
    return digest(files=parts)


def _touched(file: Path) -> tuple[int, int]:
    status = file.stat()
    return status.st_mtime_ns, status.st_size


@lru_cache(maxsize=256)
def _file_digest(file: Path, mtime_ns: int, size: int) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
