"""Mends of a source's answers: which spellings it may use for a label beside the label's own.

They are a part of the source, kept as versions that never change, and of its fingerprint: what a run froze is
read as it was read then. An answer that is a label as it stands is never changed, and a spelling that could
mean two labels means none.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from annotation.common.replaced_labels import replaced_labels
from annotation.common.value_reader import Read, ValueReader, reader_of
from annotation.task_types.base import SEPARATORS
from routing.models import MendVersion, Source
from routing.sources.backends.base import digest


@dataclass(frozen=True)
class Mends:
    """`blanks`: repeated blanks count as one; `capitals`: capitals do not matter; `labels`: what an answer
    says instead of a label, and that label's key. `number` is that of the stored version, 0 of none.
    `merged` are the project's labels that are read as others now, in any source.
    """

    blanks: bool = False
    capitals: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    number: int = field(default=0, compare=False)
    merged: Mapping[str, str] = field(default_factory=dict, compare=False)

    @property
    def document(self) -> dict[str, Any]:
        return {"blanks": self.blanks, "capitals": self.capitals, "labels": dict(self.labels)}

    def __bool__(self) -> bool:
        return self.blanks or self.capitals or bool(self.labels)

    def folded(self, text: str) -> str:
        """The text without what does not matter."""
        text = " ".join(text.split()) if self.blanks else text.strip()
        return text.casefold() if self.capitals else text


NONE = Mends()


def mends_of(source: Source) -> Mends:
    """Those in force: of the newest version, and of labels that were merged into others since."""
    newest = source.mend_versions.order_by("-number").first() if source.pk else None
    found = NONE if newest is None else mends_in(newest)
    replaced = replaced_labels(source.project)
    if not replaced:
        return found
    merged = replaced.merged
    named = {text: merged.get(key, key) for text, key in found.labels.items() if key not in replaced.split}
    return replace(found, labels=named, merged=merged)


def mends_in(version: MendVersion) -> Mends:
    return Mends(version.blanks, version.capitals, version.labels, version.number)


def with_mends(fingerprint: str, mends: Mends) -> str:
    """The fingerprint of a source whose backend has this one; the same where nothing is mended."""
    if not mends and not mends.merged:
        return fingerprint
    merged = {"merged": dict(mends.merged)} if mends.merged else {}
    return digest(answers=fingerprint, mends=mends.document, **merged)


def every_fingerprint(source: Source, fingerprint: str) -> list[str]:
    """All under which a source whose backend has this one has ever been able to answer."""
    versions = [mends_in(version) for version in source.mend_versions.all()]
    return [fingerprint, *{with_mends(fingerprint, mends) for mends in (*versions, mends_of(source))}]


def can_be_mended(reader: ValueReader, *, prompted: bool) -> bool:
    """Whether a source has anything to mend: of what a language model writes, the label is read by itself,
    and where labels are no choices there is nothing to spell otherwise.
    """
    return reader.kind.has_choices and not prompted


def reader_for(source: Source) -> ValueReader:
    """The reader of what a source answers."""
    reader, mends = reader_of(source.project), mends_of(source)
    return MendingReader(reader.task_type, reader.keys, mends) if mends else reader


@dataclass(frozen=True)
class MendingReader(ValueReader):
    """Reads what its project reads, and besides what `mends` make readable."""

    mends: Mends = NONE

    def __call__(self, raw: Any) -> Read:
        value, reason = super().__call__(raw)
        if value is not None:
            return value, reason
        mended = self._mended(raw)
        return (value, reason) if mended is None else super().__call__(mended)

    def keys_with(self, names: Iterable[object]) -> Mapping[str, str]:
        """`keys`, and of these names those that are read as a label."""
        found = ((str(name), self.label(str(name))) for name in names)
        return {**{name: key for name, key in found if key is not None}, **self.keys}

    def label(self, text: str) -> str | None:
        """The key of the label that a text names, mended or not; None where it names none."""
        stripped = text.strip()
        own = self.keys.get(text) or self.keys.get(stripped)
        return own or self.mends.labels.get(stripped) or self._folded.get(self.mends.folded(text))

    @cached_property
    def _folded(self) -> dict[str, str]:
        """Without what does not matter, what names one label alone. What somebody named goes before."""
        meant: dict[str, set[str]] = {}
        for spelling, key in self.keys.items():
            meant.setdefault(self.mends.folded(spelling), set()).add(key)
        named: dict[str, set[str]] = {}
        for spelling, key in self.mends.labels.items():
            named.setdefault(self.mends.folded(spelling), set()).add(key)
        return {text: next(iter(keys)) for text, keys in {**named, **meant}.items() if len(keys) == 1}

    def _mended(self, raw: Any) -> str | list[Any] | None:
        if isinstance(raw, str) and (key := self.label(raw)) is not None:
            return [key] if self.kind.several else key
        if not self.kind.several:
            return None
        parts: Sequence[Any] = SEPARATORS.split(raw) if isinstance(raw, str) else raw
        return list(self._parts(parts)) if isinstance(parts, list | tuple) else None

    def _parts(self, parts: Sequence[Any]) -> Iterator[Any]:
        for part in parts:
            if isinstance(part, str) and not part.strip():
                continue
            key = self.label(part) if isinstance(part, str) else None
            yield part if key is None else key
