"""What people write about an item, and flags that ask a reviewer to look at it."""

from collections.abc import Collection

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.common import audit, limits
from annotation.errors import ConflictError, InputError
from annotation.labelling.leases import has_seen
from annotation.labelling.validation import check_comment
from annotation.models import Comment, Item, User, WorkItem


def add_comment(
    *, item: Item, author: User, text: str, is_flag: bool = False, work_item: WorkItem | None = None
) -> Comment:
    """Store a comment on the item. `work_item` is what the author labels while they write it: for as long as
    its batch is hidden, so is the comment.

    A flag that came before with the same words, and that nobody has resolved, is not set twice. Raises
    InputError for a comment without a word that is no flag, and for one that is too long; ConflictError where
    the item has limits.COMMENTS.
    """
    text = check_comment(text.strip())
    if not text and not is_flag:
        raise InputError(_("Write something, or flag the item."), where="text")
    if work_item is not None and work_item.item_id != item.pk:
        raise InputError(_("The work item asks for another item."), where="work_item")
    with transaction.atomic():
        if is_flag:
            same = Comment.objects.filter(
                item=item, work_item=work_item, author=author, text=text, is_flag=True, resolved_at=None
            )
            if (earlier := same.first()) is not None:
                return earlier
        Item.objects.select_for_update(no_key=True).only("pk").get(pk=item.pk)
        limits.refuse_more(
            Comment.objects.filter(item=item),
            limits.COMMENTS,
            _("An item has at most %(most)s comments and flags."),
            code="too_many_comments",
        )
        comment = Comment.objects.create(
            item=item, work_item=work_item, author=author, text=text, is_flag=is_flag
        )
        # Not the item: whoever reads the trail must not learn what is in a hidden batch.
        audit.record(
            project=item.project,
            actor=author,
            action="item.flagged" if is_flag else "item.commented",
            target=f"comment:{comment.pk}",
        )
    return comment


def flag_own_work(*, work_item: WorkItem, author: User, text: str) -> Comment:
    """Ask a reviewer to look at an item that the person labels, or has had before them.

    Raises ConflictError where they never had it or have it no longer; what `add_comment` raises.
    """
    if not has_seen(user=author, work_item=work_item):
        raise ConflictError(_("This item is no longer yours, so it was not flagged."), code="lease_gone")
    return add_comment(item=work_item.item, author=author, text=text, is_flag=True, work_item=work_item)


def flagged_by(user: User, items: Collection[int]) -> set[int]:
    """Which of these items this person has flagged, and nobody has seen to yet."""
    if not items:
        return set()
    flags = Comment.objects.filter(author=user, item__in=list(items), is_flag=True, resolved_at=None)
    return set(flags.values_list("item_id", flat=True))


def resolve_flag(*, comment: Comment, actor: User) -> Comment:
    """Say that somebody has seen to a flag. Raises ConflictError for what is no flag or resolved already."""
    with transaction.atomic():
        open_flag = Comment.objects.filter(pk=comment.pk, is_flag=True, resolved_at=None)
        if not open_flag.update(resolved_at=timezone.now(), resolved_by=actor):
            raise ConflictError(
                _("This is no open flag: somebody else has resolved it, or it is a comment."),
                code="flag_not_open",
            )
        audit.record(
            project=comment.item.project,
            actor=actor,
            action="flag.resolved",
            target=f"comment:{comment.pk}",
        )
    comment.refresh_from_db()
    return comment
