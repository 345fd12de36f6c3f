"""What owners and managers do with the buckets, and data sets of the Hugging Face Hub, that a project takes
files from and delivers to.
"""

import re
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from annotation.common import audit, limits
from annotation.common.locks import locked_project
from annotation.common.one_line import checked_line
from annotation.errors import ConflictError, InputError
from annotation.models import BucketFile, BucketSync, Connection, Project, User
from annotation.outside.buckets import Bucket, ObjectInfo, Place
from annotation.outside.circles import refuse_circle
from annotation.outside.hub import DataSet, Repository
from annotation.outside.net import check_url
from annotation.outside.secrets import decrypt, encrypt

MOST = 20
BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_PART = r"(?!.*(?:--|\.\.))[A-Za-z0-9_][A-Za-z0-9._-]{0,95}"
DATA_SET = re.compile(f"{_PART}/{_PART}")
BRANCH = re.compile(r"(?!.*\.\.)[A-Za-z0-9_][A-Za-z0-9._/-]{0,59}")
REGION = re.compile(r"[a-z0-9-]{1,60}")
ACCESS_KEY = re.compile(r"[\x21-\x7e]{1,200}")
TRY_BYTES = 1
PAGE_SECONDS = 20
"""So long somebody waits for a list of objects on a page."""


def create_connection(*, project: Project, actor: User, secret: str = "", **fields: Any) -> Connection:
    """Fields are those of the model: name, kind, endpoint, bucket, prefix, region, path_style, access_key. A
    data set on the Hub needs name and bucket alone.

    Raises InputError whose `where` names the field, ConflictError where the name is taken.
    """
    kind = fields.pop("kind", Connection.Kind.S3)
    if kind == Connection.Kind.HUB:
        values = _checked_of_hub({"prefix": "", "region": "main", **fields})
    else:
        values = _checked({"prefix": "", "region": "us-east-1", "path_style": True, **fields})
    encrypted = _encrypted(secret, kind)
    with transaction.atomic():
        locked_project(project.pk)
        if project.connections.count() >= MOST:
            raise ConflictError(
                _("A project has at most %(most)s connections. Delete one first.") % {"most": MOST},
                code="too_many_connections",
            )
        connection = _stored(
            Connection(project=project, created_by=actor, kind=kind, secret=encrypted, **values)
        )
        _record(connection, actor, "connection.made", {})
    return connection


def update_connection(
    *, connection: Connection, actor: User, secret: str | None = None, **fields: Any
) -> Connection:
    """Change some fields. With another address, bucket or data set, or a folder that does not lie in the one
    before, the secret has to be entered, too: nobody can have a stored one sent to a place of their own, or
    read others' data with it.

    Raises as `create_connection`, and InputError where deliveries would be imported again.
    """
    values = _checked_of_hub(fields) if connection.is_hub else _checked(fields)
    with transaction.atomic():
        # As whoever saves what is synchronised: each looks whether one takes what another writes.
        locked_project(connection.project_id)
        known = Connection.objects.select_for_update(of=("self",), no_key=True).select_related("project")
        current = known.get(pk=connection.pk)
        changed = [name for name, value in values.items() if getattr(current, name) != value]
        if "endpoint" in changed and secret is None:
            raise InputError(_("Enter the secret key again with the new address."), where="secret")
        wider = "prefix" in changed and not values["prefix"].startswith(current.prefix)
        if ("bucket" in changed or wider) and secret is None and current.secret:
            words = _("Enter the token again with the new data set or folder.")
            if not current.is_hub:
                words = _("Enter the secret key again with the new bucket or folder.")
            raise InputError(words, where="secret")
        for name in changed:
            setattr(current, name, values[name])
        moved = [name for name in ("prefix", "bucket", "endpoint") if name in changed]
        if moved and (sync := BucketSync.objects.filter(connection=current).first()):
            sync.connection = current
            refuse_circle(sync, where=moved[0])
        if secret is not None:
            current.secret = _encrypted(secret, current.kind)
            changed.append("secret")
        if {"endpoint", "bucket"}.intersection(changed) or (current.is_hub and "region" in changed):
            # What another bucket has was never taken.
            BucketFile.objects.filter(sync__connection=current).delete()
        if changed:
            _stored(current)
            _record(current, actor, "connection.changed", {"changed": changed})
    return current


def delete_connection(*, connection: Connection, actor: User) -> None:
    """What was read from it and delivered to it stays."""
    with transaction.atomic():
        _record(connection, actor, "connection.deleted", {"name": connection.name})
        connection.delete()


def list_folder(*, connection: Connection, below: str) -> tuple[list[ObjectInfo], bool]:
    """The first objects of this folder in that of the connection, and whether there are more. Outside of any
    transaction.

    Raises InputError for what is no folder, and as `try_connection` does.
    """
    prefix = connection.prefix + folder(below, where="folder")
    with store_of(connection) as place:
        found = list(place.list_objects(prefix, at_most=limits.LISTED + 1, seconds=PAGE_SECONDS))
    return found[: limits.LISTED], len(found) > limits.LISTED


def try_connection(*, connection: Connection) -> int:
    """Look at the bucket; returns the number of objects seen, at most one. Outside of any transaction.

    Raises NetError, InputError and others as `annotation.outside.buckets` does.
    """
    with store_of(connection) as bucket:
        return len(list(bucket.list_objects(connection.prefix, at_most=TRY_BYTES, seconds=PAGE_SECONDS)))


def store_of(connection: Connection) -> Bucket | Repository:
    """Where files are read, whatever it is. Raises InputError where the stored secret can no longer be read,
    or this server asks no Hub.
    """
    return hub_of(connection) if connection.is_hub else bucket_of(connection)


def hub_of(connection: Connection) -> Repository:
    """Of a connection of that kind."""
    token = decrypt(connection.secret, where="secret")
    return Repository(DataSet(repo=connection.bucket, branch=connection.region, token=token))


def bucket_of(connection: Connection) -> Bucket:
    """Of a connection of that kind."""
    return Bucket(
        Place(
            endpoint=connection.endpoint,
            bucket=connection.bucket,
            region=connection.region,
            path_style=connection.path_style,
            access_key=connection.access_key,
            secret=decrypt(connection.secret, where="secret"),
        )
    )


def _checked(fields: dict[str, Any]) -> dict[str, Any]:
    values = dict(fields)
    if "name" in values:
        values["name"] = checked_line(" ".join(str(values["name"]).split()), where="name")
        if not 1 <= len(values["name"]) <= 100:
            raise InputError(_("A name has 1 to 100 characters."), where="name")
    if "endpoint" in values:
        url = check_url(values["endpoint"], where="endpoint").rstrip("/")
        if url.count("/") > 2 or "?" in url or len(url) > 500:
            raise InputError(
                _("Enter the address of the store alone, like https://s3.eu-west-1.amazonaws.com; bucket and "
                  "folder have fields of their own."),
                where="endpoint",
            )  # fmt: skip
        values["endpoint"] = url
    if "bucket" in values and not BUCKET.fullmatch(values["bucket"]):
        raise InputError(
            _("A bucket's name has 3 to 63 small letters, digits, dots and hyphens."), where="bucket"
        )
    if "region" in values and not REGION.fullmatch(values["region"]):
        raise InputError(_("A region looks like eu-west-1."), where="region")
    if "access_key" in values and not ACCESS_KEY.fullmatch(values["access_key"]):
        raise InputError(_("An access key has 1 to 200 letters, digits and signs."), where="access_key")
    if "prefix" in values:
        values["prefix"] = folder(values["prefix"], where="prefix")
    return values


def _checked_of_hub(fields: dict[str, Any]) -> dict[str, Any]:
    if not settings.HYPAC_HUB_ENDPOINT:
        raise InputError(
            _("This server asks no Hub: whoever runs it sets HYPAC_HUB_ENDPOINT."), where="bucket"
        )
    values = dict(fields)
    for name in ("endpoint", "path_style", "access_key"):
        if name in values:
            raise InputError(_("A data set of the Hub has no such field; leave it out."), where=name)
    if "bucket" in values and not DATA_SET.fullmatch(values["bucket"]):
        raise InputError(
            _("A data set is named by its owner and its own name, like organisation/reviews."), where="bucket"
        )
    if "region" in values and not BRANCH.fullmatch(values["region"]):
        raise InputError(_("A branch looks like main, a revision like 5f2a9c1."), where="region")
    return _checked({name: values[name] for name in ("name", "prefix") if name in values}) | {
        name: values[name] for name in ("bucket", "region") if name in values
    }


def folder(text: str, *, where: str) -> str:
    """A prefix of keys that ends with "/", or "". Raises InputError."""
    text = text.strip().strip("/")
    if len(text) > 490 or any(part in ("", ".", "..") for part in text.split("/") if text):
        raise InputError(_("A folder has at most 490 characters, and no part is “.” or “..”."), where=where)
    if any(ord(sign) < 32 or ord(sign) == 127 for sign in text):
        raise InputError(_("A folder has no control characters."), where=where)
    return f"{text}/" if text else ""


def _encrypted(secret: str, kind: str) -> str:
    if kind == Connection.Kind.HUB and not secret:
        return ""  # what everybody may read needs none
    if not ACCESS_KEY.fullmatch(secret):
        raise InputError(_("A secret key has 1 to 200 letters, digits and signs."), where="secret")
    return encrypt(secret)


def _stored(connection: Connection) -> Connection:
    try:
        with transaction.atomic():
            connection.save()
    except IntegrityError:
        raise ConflictError(
            _("There is a connection of this name already."), where="name", code="name_taken"
        ) from None
    return connection


def _record(connection: Connection, actor: User, action: str, data: dict[str, Any]) -> None:
    """Neither key is told, nor anything of it."""
    audit.record(
        project=connection.project,
        actor=actor,
        action=action,
        target=f"connection:{connection.pk}",
        data={"bucket": connection.bucket, "endpoint": connection.endpoint, **data},
    )
