"""Deliveries of a project are never imported again as new items of it: where one connection writes, no other
one takes files.
"""

from typing import Any

from django.utils.translation import gettext as _

from annotation.errors import InputError
from annotation.models import BucketSync, Connection


def refuse_watched(*, connection: Connection, prefix: str) -> None:
    """Raises InputError where what is written below `prefix`, the beginning of a key, would be imported as
    new items of the project.
    """
    for other in _in_same_bucket(connection).filter(takes=True):
        if prefix.startswith(other.connection.prefix + other.take_from):
            words = _(
                "New files of this folder are imported into the project (connection “%(name)s”): choose "
                "another one."
            )
            raise InputError(words % {"name": other.connection.name}, where="prefix")


def refuse_circle(sync: BucketSync, *, where: str = "") -> None:
    """Raises InputError where deliveries would be written to where files are taken from; it names the field
    `where`, or else the folder of the two that `sync` has.
    """
    others = [*_in_same_bucket(sync.connection).exclude(pk=sync.pk), sync]
    for taking in others:
        for writing in others:
            if sync not in (taking, writing) or not taking.takes or writing.writes_since is None:
                continue
            connection = writing.connection
            # Into a data set of the Hub there is one delivery, the newest (routing.delivery.hub_export).
            of_its_own = "delivery" if connection.is_hub else connection.project.slug
            written = f"{connection.prefix}{writing.write_to}{of_its_own}/"
            taken = taking.connection.prefix + taking.take_from
            if written.startswith(taken) or taken.startswith(written):
                words = _(
                    "Deliveries would be written into %(written)s and imported again as new items. Choose a "
                    "folder for new files that they are not written into."
                )
                folder = "take_from" if sync is taking else "write_to"
                raise InputError(words % {"written": written}, where=where or folder)


def _in_same_bucket(connection: Connection) -> Any:
    return BucketSync.objects.select_related("connection__project").filter(
        connection__project=connection.project_id,
        # Whatever the address: one store has several names.
        connection__bucket__iexact=connection.bucket,
    )
