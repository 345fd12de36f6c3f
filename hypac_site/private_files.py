"""Who may read what this site writes: the account that it runs as, and nobody else of the machine."""

import logging
import os
import stat
from pathlib import Path

log = logging.getLogger(__name__)


def close_database(file: Path, umask: int) -> None:
    """Of SQLite, with what it writes beside the file."""
    for name in (file.name, f"{file.name}-wal", f"{file.name}-shm"):
        close(file.with_name(name), umask)


def close(path: Path, umask: int) -> None:
    """Take from others what an older version, or whoever made `path`, left them. Says so, which is once.

    Only what belongs to this account, no link to somewhere else, and no folder that is shared on purpose,
    such as /tmp. Where it cannot be done, things stay as they are.
    """
    try:
        found = path.lstat()
        mode = stat.S_IMODE(found.st_mode)
        ours = found.st_uid == os.geteuid() and not stat.S_ISLNK(found.st_mode) and not mode & stat.S_ISVTX
        if not mode & umask or not ours:
            return
        path.chmod(mode & ~umask)
    except FileNotFoundError:
        return
    except OSError as error:
        log.warning("Others may read %s, and that cannot be changed (%s).", path, error.strerror)
        return
    log.warning("Others of this machine could read %s (%o). They cannot any longer.", path, mode)
