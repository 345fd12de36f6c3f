"""The one way from a stored file to its rows: whatever its format, they pass through its allowance."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import IO

from annotation.common.files import open_file
from annotation.imports.allowance import Allowance, Deadline
from annotation.imports.encodings import as_encoded
from annotation.imports.formats.base import Importer, Record
from annotation.imports.formats.delivered import with_labels
from annotation.imports.formats.excel import Excel
from annotation.models import StoredFile


class Reading:
    """A file that is open. `spent` is what its rows have taken of its allowance so far (`Allowance`)."""

    def __init__(
        self, file: IO[bytes], stored: StoredFile, *, encoding: str, waiting: bool, spent: int
    ) -> None:
        self.name = stored.original_name
        self.file = as_encoded(file, encoding, Deadline.of_an_import(), self.name)
        self._size, self._waiting, self._before = stored.size, waiting, spent
        self._allowance = self._new_allowance(spent)

    @property
    def spent(self) -> int:
        return self._allowance.spent

    def records(self, importer: Importer, *, skip: int = 0) -> Iterator[Record]:
        """Raises ImportLimitError where there is more of them than may be."""
        self._allowance = self._new_allowance(self._before)
        found = self._limited(importer).records(self.file, self.name, skip=skip)
        return self._allowance.passed(with_labels(found))

    def count(self, importer: Importer) -> int:
        """Number of records in the whole file. What is counted can be read."""
        self._allowance = self._new_allowance(0)
        return self._allowance.counted(self._limited(importer).measure(self.file, self.name))

    def _new_allowance(self, spent: int) -> Allowance:
        """From now on it is what the file's reading has to keep to."""
        deadline = Deadline.of_a_look() if self._waiting else Deadline.of_an_import()
        self.file.until(deadline)
        return Allowance(self._size, spent=0 if self._waiting else spent, deadline=deadline)

    def _limited(self, importer: Importer) -> Importer:
        """Of a workbook the first row may take long to come."""
        if isinstance(importer, Excel) and importer.deadline is None:
            return replace(importer, deadline=self._allowance.deadline)
        return importer


@contextmanager
def reading(
    stored: StoredFile, *, encoding: str = "", waiting: bool = False, spent: int = 0
) -> Iterator[Reading]:
    """`encoding` is what `encoding_of` says; `waiting`: somebody waits for a page, so that it has to be
    quick; `spent`: by earlier attempts.
    """
    with open_file(stored) as file:
        yield Reading(file, stored, encoding=encoding, waiting=waiting, spent=spent)
