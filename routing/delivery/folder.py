"""A delivery as files of a folder on this machine."""

import hashlib
import tempfile
from pathlib import Path

from django.utils.translation import gettext as _

from annotation.common.files import BLOCK, open_file
from annotation.errors import HypacError
from annotation.models import Project, StoredFile
from routing.delivery.folder_record import check_project, forget, goes_on, note, replacing
from routing.models import Delivery


def check_folder(folder: Path, *, project: Project) -> None:
    """Make the folder where it is missing. Raises HypacError where nothing of the project can be written into
    it, which is better known before a delivery is made for it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        words = _("Nothing can be written into the folder %(folder)s: %(reason)s.")
        raise HypacError(words % {"folder": folder, "reason": error.strerror}) from error
    check_project(folder, project)


def write_delivery(*, delivery: Delivery, folder: Path) -> list[Path]:
    """Write its files into the folder, which is made where it is missing, and return their paths.

    A file takes its name only once it is whole and its SHA-256 is right; one of that name is replaced. Which
    delivery it was is noted last (`folder_record`), so that what could not be written is told again. Raises
    HypacError where the stored file is not what was delivered, OSError where it cannot be written.
    """
    written = []
    whole = goes_on(folder, delivery)
    if not whole:
        forget(folder)
    for entry in delivery.files.select_related("file"):
        path = folder / entry.name  # names are the formats' own, never a person's
        if not path.resolve().is_relative_to(folder.resolve()):
            raise HypacError(_("The name of the file leads out of the folder."), where=entry.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(entry.file, path)
        written.append(path)
    if whole:
        note(folder, delivery)
    return written


def _write(stored: StoredFile, path: Path) -> None:
    digest = hashlib.sha256()
    with replacing(path) as file, open_file(stored) as content:
        while block := content.read(BLOCK):
            digest.update(block)
            file.write(block)
        if digest.hexdigest() != stored.sha256:
            raise HypacError(
                _("The stored file is damaged: its SHA-256 is not that of the delivery. Make a new one."),
                where=path.name,
            )
