"""Change which spellings of labels a source may use."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from annotation.common import audit, limits
from annotation.common.locks import locked_project
from annotation.common.value_reader import reader_of
from annotation.errors import InputError
from annotation.models import User
from routing.models import MendVersion, Source
from routing.sources import storable
from routing.sources.backends import backend_class
from routing.sources.manage import refuse_in_use
from routing.sources.mends import Mends, can_be_mended, mends_of

MOST_LABELS = 200
VERSIONS = 1_000


def mendable(source: Source) -> bool:
    """Whether the answers of the source have spellings that could be mended."""
    return can_be_mended(reader_of(source.project), prompted=backend_class(source.backend).prompted)


def save_mends(
    *,
    source: Source,
    user: User,
    blanks: bool = False,
    capitals: bool = False,
    labels: Mapping[str, Any] | None = None,
) -> Mends:
    """Read the answers of the source so from now on: a new version, where it differs from the one in force.

    `labels` is what an answer says instead of a label -> that label, by its key or a name that it alone has.
    With `blanks` repeated blanks count as one, with `capitals` capitals do not matter.

    Raises InputError, its `where` "labels" or "source", where that cannot be, and ConflictError where a run
    that is under way rests on how they are read now.
    """
    if not mendable(source):
        raise InputError(
            _(
                "There is nothing to mend here: that is for projects with choices, and for models whose "
                "answers are labels and not text that a label is read from."
            ),
            where="source",
        )
    wanted = Mends(blanks, capitals, _checked(source, labels or {}))
    with transaction.atomic():
        locked_project(source.project_id)  # no run starts meanwhile
        source = Source.objects.select_for_update(no_key=True).get(pk=source.pk)
        before = mends_of(source)
        if wanted == before:
            return before
        refuse_in_use(source)
        limits.refuse_more(
            source.mend_versions.all(),
            VERSIONS,
            _("The spellings of a source are changed at most %(most)s times. Add another source."),
            code="too_many_spellings",
        )
        version = MendVersion.objects.create(
            source=source, number=before.number + 1, created_by=user, **wanted.document
        )
        audit.record(
            project=source.project,
            actor=user,
            action="source.mended",
            target=f"source:{source.pk}",
            data={"name": source.name, "version": version.number, **wanted.document},
        )
    return mends_of(source)


def _checked(source: Source, labels: Mapping[str, Any]) -> dict[str, str]:
    """By the spelling the key of the label that it means, in one order."""
    keys, found = reader_of(source.project).keys, {}
    if len(labels) > MOST_LABELS:
        raise InputError(
            _("At most %(most)s spellings can be named.") % {"most": MOST_LABELS}, where="labels"
        )
    for given, label in labels.items():
        spelling = given.strip()
        shown = {"spelling": spelling[:60]}
        if not spelling or len(spelling) > limits.NAME or not storable.fits(spelling):
            raise InputError(
                _("A spelling is text of at most %(most)s characters.") % {"most": limits.NAME},
                where="labels",
            )
        if spelling in keys:
            raise InputError(
                _("“%(spelling)s” is a label of this project as it stands.") % shown, where="labels"
            )
        key = keys.get(label) if isinstance(label, str) else None
        if key is None:
            raise InputError(
                _("What “%(spelling)s” is to mean is no label of this project.") % shown, where="labels"
            )
        found[spelling] = key
    return dict(sorted(found.items()))
