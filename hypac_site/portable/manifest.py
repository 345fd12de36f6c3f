"""What a project file says of itself."""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from django.db.migrations.loader import MigrationLoader

from annotation.errors import InputError
from annotation.storable import NOT_STORED
from hypac_site.version import version

FORMAT = "hypac-project"
VERSION = 1
NAME = "manifest.json"
PEOPLE = "people.jsonl"
APPS = ("annotation", "routing")
MOST_BYTES = 4 * 2**20
# Of what a file may claim: any database ends below that.
MOST = 2**53
LONGEST = 300
CONTROL = re.compile("[\0-\x1f\x7f-\x9f\ud800-\udfff]")
SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Part:
    """A table, or the people: `rows` lines in `bytes` bytes."""

    name: str
    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """`migrations` are those of the tables, as app.name; `files` and `files_bytes` count the stored files,
    and `missing` are the SHA-256 of those that the storage had lost. `left_out` says how many rows of which
    kind stayed behind.
    """

    format: str
    version: int
    hypac: str
    made_at: str
    migrations: list[str]
    slug: str
    name: str
    parts: list[Part]
    files: int
    files_bytes: int
    missing: list[str]
    left_out: dict[str, int]

    def written(self) -> bytes:
        return (json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n").encode()

    @classmethod
    def read(cls, content: bytes) -> "Manifest":
        """Raises InputError for what is no manifest, or one of another version."""
        try:
            found = json.loads(content.decode())
        except (ValueError, RecursionError):
            raise InputError("It cannot be read.", where=NAME) from None
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise InputError("This is no file of a project.", where=NAME)
        _refuse_other_version(found)
        try:
            parts = [Part(**part) for part in found.pop("parts")]
            manifest = cls(**found, parts=parts)
        except (TypeError, KeyError, AttributeError):
            raise InputError("It lacks something, or has too much.", where=NAME) from None
        if not manifest._is_sound():
            raise InputError("Something in it is of the wrong kind.", where=NAME)
        return manifest

    def _is_sound(self) -> bool:
        counts = [self.files, self.files_bytes]
        counts += [count for part in self.parts for count in (part.rows, part.bytes)]
        texts = [self.hypac, self.made_at, self.slug]
        texts += [text for part in self.parts for text in (part.name, part.sha256)]
        return (
            isinstance(self.missing, list)
            and isinstance(self.left_out, dict)
            and all(type(count) is int and 0 <= count < MOST for count in (*counts, *self.left_out.values()))
            # Some are told in a terminal.
            and all(_is_plain(text) for text in (*texts, *self.left_out))
            and all(isinstance(text, str) and SHA256.fullmatch(text) for text in self.missing)
            and isinstance(self.name, str)
            and not NOT_STORED.search(self.name)
            and _is_moment(self.made_at)
        )


def _is_plain(text: Any) -> bool:
    return isinstance(text, str) and len(text) <= LONGEST and not CONTROL.search(text)


def _is_moment(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def migrations() -> list[str]:
    """Those that the tables of this version stand on."""
    known = MigrationLoader(None, ignore_no_migrations=True).disk_migrations
    return sorted(f"{app}.{name}" for app, name in known if app in APPS)


def _refuse_other_version(found: Mapping[str, Any]) -> None:
    here, made_by = version(), str(found.get("hypac", "?"))[:40]
    if found.get("version") != VERSION:
        raise InputError(
            f"The file was made by HyPAC {made_by}, whose format of projects this version ({here}) does not "
            "read. Bring both installations to one version, and export the project again."
        )
    theirs, ours = found.get("migrations"), migrations()
    if not isinstance(theirs, list) or not all(isinstance(name, str) for name in theirs):
        raise InputError("Something in it is of the wrong kind.", where=NAME)
    if sorted(theirs) == ours:
        return
    older = sorted(set(ours) - set(theirs))
    newer = sorted(set(theirs) - set(ours))
    differs = f"it lacks {older[0]}" if older else f"it has {newer[0][:100]}, which is not known here"
    raise InputError(
        f"The file was made by HyPAC {made_by}, whose tables are not those of this installation ({here}): "
        f"{differs}. Bring both installations to one version, and export the project again."
    )
