"""What waits for people, once a day at most, to those who did nothing of late."""

from datetime import timedelta

from django.core.cache import cache
from django.db.models import Exists, OuterRef
from django.utils import timezone

from annotation.common.mail import WORK, is_on, may_be_written_to, store_mail
from annotation.labelling.queries import waiting_for
from annotation.models import Label, Mail, Membership, User, WorkItem

LOOK_SECONDS = 3600
# Whoever labels knows that there is work.
QUIET = timedelta(hours=12)
# A letter names so many projects at most.
NAMED = 20


def post_digests() -> int:
    """Store the letters that are due, now and then; returns how many."""
    if not is_on() or not cache.add("mail-digests", 1, LOOK_SECONDS):
        return 0
    now = timezone.now()
    lately = Label.objects.filter(annotator=OuterRef("pk"), created_at__gt=now - QUIET)
    told = Mail.objects.filter(user=OuterRef("pk"), kind=WORK, created_at__gt=now - timedelta(hours=23))
    people = User.objects.filter(may_be_written_to(), ~Exists(lately), ~Exists(told), mail_work=True)
    return sum(_post(user) for user in people.iterator())


def _post(user: User) -> bool:
    unfinished = WorkItem.objects.filter(
        batch__project=OuterRef("project"), state__in=WorkItem.UNFINISHED, batch__locked_at__isnull=True
    )
    mine = Membership.objects.filter(
        Exists(unfinished),
        user=user,
        is_active=True,
        project__archived_at__isnull=True,
        project__deleting_at__isnull=True,
    ).select_related("project")
    rows = [
        {"project": one.project.slug, "name": one.project.name, "count": count}
        for one in mine.order_by("project__name")[:NAMED]
        if (count := waiting_for(one.project, user))
    ]
    if rows:
        key = f"{WORK}:{user.pk}:{timezone.now():%Y-%m-%d}"
        store_mail(kind=WORK, to=user.email, user=user, data={"projects": rows}, key=key)
    return bool(rows)
