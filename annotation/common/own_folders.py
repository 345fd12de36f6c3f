"""Temporary folders that a process holds as long as it lives: what a killed one leaves is removed."""

import fcntl
import logging
import shutil
import tempfile
import time
from pathlib import Path

log = logging.getLogger(__name__)

PREFIX, HELD = "hypac-own-", ".held"
# So long a folder may be there before its process holds it.
YOUNG_SECONDS = 60


class OwnFolder(tempfile.TemporaryDirectory[str]):
    """Used as its base is. The system gives up the lock on `HELD` where the process ends, however it does."""

    def __init__(self, purpose: str) -> None:
        remove_abandoned()  # also on machines where nothing else looks
        super().__init__(prefix=f"{PREFIX}{purpose}-")
        self._held = open(Path(self.name) / HELD, "wb")  # noqa: SIM115 - as long as the folder
        fcntl.flock(self._held, fcntl.LOCK_EX)

    def cleanup(self) -> None:
        self._held.close()
        super().cleanup()


def remove_abandoned() -> int:
    """Remove those of processes of this machine that are gone; returns how many that was."""
    removed = 0
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        try:
            if _is_left(folder):
                shutil.rmtree(folder)
                removed += 1
        except FileNotFoundError:
            continue  # its process, or another one that looks, was first
        except OSError as error:
            log.warning("What a process left in %s cannot be removed: %s", folder, error.strerror)
    return removed


def _is_left(folder: Path) -> bool:
    if folder.is_symlink() or time.time() - folder.stat().st_mtime < YOUNG_SECONDS:
        return False
    try:
        with open(folder / HELD, "rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return True  # it died before it held it, or while it removed it
    except BlockingIOError:
        return False
    return True
