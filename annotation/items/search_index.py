"""The index by which PostgreSQL finds a part of a text or of a name among millions of items.

It is there on demand: keeping it up to date takes several times as long as storing the items themselves, and
few installations hold so many that reading them all takes too long.
"""

from django.db import connection
from django.db.utils import NotSupportedError, ProgrammingError
from django.utils.translation import gettext as _

from annotation.errors import HypacError
from annotation.models import Item

NAME = "item_search"
MEMORY = "256MB"


def create_search_index() -> bool:
    """Make the index while others read and write; False where it is there already.

    Raises HypacError where the database is not PostgreSQL, or lacks the extension pg_trgm and may not add
    it.
    """
    _must_be_postgresql()
    with connection.cursor() as cursor:
        cursor.execute("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", [NAME])
        known = cursor.fetchone()
        if known == (True,):
            return False
        try:
            cursor.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm")
        except (NotSupportedError, ProgrammingError) as error:
            raise HypacError(
                _(
                    "The extension pg_trgm of PostgreSQL is missing and cannot be added: %(reason)s Install "
                    "the package with PostgreSQL's own extensions (Debian: postgresql-contrib), or have "
                    '"CREATE EXTENSION pg_trgm" done in this database by somebody who may.'
                )
                % {"reason": str(error).strip()}
            ) from error
        if known:  # left by one that was broken off
            cursor.execute(f"DROP INDEX CONCURRENTLY {NAME}")
        cursor.execute("SELECT set_config('maintenance_work_mem', %s, false)", [MEMORY])
        try:
            # As Django asks in `icontains`. Names are from here and from the model.
            cursor.execute(
                f"CREATE INDEX CONCURRENTLY {NAME} ON {Item._meta.db_table} USING gin "
                "(upper(text) gin_trgm_ops, upper(external_id) gin_trgm_ops)"
            )
        finally:
            cursor.execute("RESET maintenance_work_mem")
        # How often words are in texts, by which the index is used or not.
        cursor.execute(f"ANALYZE {Item._meta.db_table}")
    return True


def drop_search_index() -> bool:
    """Take the index away; False where there is none. Raises HypacError where there cannot be one."""
    _must_be_postgresql()
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass(%s) IS NOT NULL", [NAME])
        there = bool(cursor.fetchone()[0])
        if there:
            cursor.execute(f"DROP INDEX CONCURRENTLY {NAME}")
    return there


def _must_be_postgresql() -> None:
    if connection.vendor != "postgresql":
        raise HypacError(_("Only PostgreSQL has an index for searching. On SQLite all items are read."))
