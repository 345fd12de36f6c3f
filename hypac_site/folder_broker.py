"""Messages in a folder, whole or not there: what carries them where there is no other broker.

Kombu's own transport opens a message under its name before it writes it, so that another process can take it
while it is empty: its worker then ends with a JSONDecodeError, and the message is lost. Here a message gets
its name once it is written, and so does a table of who listens; what cannot be read all the same, because of
another version or a full disk, ends no worker.
"""

import fcntl
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty
from typing import Any
from uuid import uuid4

from kombu.exceptions import ChannelError
from kombu.transport import filesystem
from kombu.utils.json import dumps, loads

log = logging.getLogger(__name__)

# A message that is still torn after so long is of a writer that died.
TORN_SECONDS = 60.0


class Channel(filesystem.Channel):
    """The folder's file names and tables are kombu's, which other versions may use beside this one."""

    def _put(self, queue: str, payload: Any, **_: Any) -> None:  # type: ignore[override]
        name = f"{round(time.monotonic() * 1000)}_{uuid4()}.{queue}.msg"
        path = Path(self.data_folder_out, name)
        # Nobody takes it for a message of the queue: that has to follow the first dot to the end.
        part = path.with_name(f"{name}.part")
        try:
            part.write_text(dumps(payload))
            part.rename(path)
        except OSError as error:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            raise ChannelError(f"Cannot add file {name!r} to directory") from error

    def _get(self, queue: str, timeout: float | None = None) -> Any:
        for name in sorted(os.listdir(self.data_folder_in)):
            if name.partition(".")[2] == f"{queue}.msg":
                message = self._taken(Path(self.data_folder_in, name))
                if message is not None:
                    return message
        raise Empty

    def _taken(self, path: Path) -> Any:
        """The message, which is nobody else's then; None where another worker has it, or it is torn."""
        mine = path.with_name(f"{path.name}.{uuid4().hex}.taken")
        try:
            path.rename(mine)
            content, written = mine.read_text(errors="replace"), mine.stat().st_mtime
        except OSError:
            return None
        try:
            message = loads(content)
        except ValueError:
            self._put_back(mine, path, written)
            return None
        mine.unlink(missing_ok=True)
        return message

    def _put_back(self, mine: Path, path: Path, written: float) -> None:
        """Its writer may be at work on it, also while it had another name."""
        if time.time() - written < TORN_SECONDS:
            mine.rename(path)
            return
        log.warning("A message was written in part and is passed over: %s", path.name)
        mine.unlink(missing_ok=True)

    def get_table(self, exchange: str) -> list[Any]:
        with self._tables():
            return self._table(exchange)

    def _queue_bind(
        self, exchange: str, routing_key: str | None, pattern: str | None, queue: str | None
    ) -> None:
        bound = filesystem.exchange_queue_t(routing_key or "", pattern or "", queue or "")
        with self._tables():
            table = self._table(exchange)
            if bound not in table:
                self._write_table(exchange, [bound, *table])

    def _delete(self, queue: str, exchange: str, routing_key: str, pattern: str, *_: Any, **__: Any) -> None:
        self._purge(queue)
        bound = filesystem.exchange_queue_t(routing_key, pattern, queue)
        with self._tables():
            table = self._table(exchange)
            if bound in table:
                self._write_table(exchange, [entry for entry in table if entry != bound])

    @contextmanager
    def _tables(self) -> Iterator[None]:
        """One at a time reads a table to write it. The lock goes with its process, however that ends."""
        self.control_folder.mkdir(parents=True, exist_ok=True)
        with open(self.control_folder / "lock", "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _table(self, exchange: str) -> list[Any]:
        try:
            found = loads(self._file(exchange).read_text(errors="replace"))
            return [filesystem.exchange_queue_t(*entry) for entry in found]
        except FileNotFoundError:
            return []
        except (ValueError, TypeError):  # torn: each worker enters itself when it starts
            log.warning("The table of the exchange %r cannot be read, and is made anew.", exchange)
            return []

    def _write_table(self, exchange: str, table: list[Any]) -> None:
        file = self._file(exchange)
        part = file.with_name(f"{file.name}.{uuid4().hex}.part")
        part.write_text(dumps(table))
        part.rename(file)

    def _file(self, exchange: str) -> Path:
        file: Path = self._exchange_file(exchange)  # type: ignore[attr-defined]
        return file


class Transport(filesystem.Transport):
    Channel = Channel
