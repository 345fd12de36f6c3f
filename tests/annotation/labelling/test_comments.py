"""Comments on items and flags that ask a reviewer to look."""

import pytest

from annotation.errors import ConflictError, InputError
from annotation.labelling.comments import add_comment, resolve_flag
from annotation.models import AuditEvent, Comment


def test_a_comment_is_stored_with_its_work_item(desk) -> None:
    task = desk.claim()
    comment = add_comment(item=task.item, author=desk.ann, text=" Blurred. ", work_item=task.work_item)
    assert (comment.text, comment.is_flag, comment.work_item) == ("Blurred.", False, task.work_item)


def test_a_flag_may_be_without_words_and_is_set_once(desk) -> None:
    task = desk.claim()
    arguments = {"item": task.item, "author": desk.ann, "work_item": task.work_item, "is_flag": True}
    first = add_comment(text="", **arguments)
    assert add_comment(text="", **arguments) == first
    assert add_comment(text="Look here.", **arguments) != first
    resolve_flag(comment=first, actor=desk.ben)
    assert add_comment(text="", **arguments) != first


@pytest.mark.parametrize("text", ["", "  ", "x" * 2001, "a\0b"])
def test_what_cannot_be_stored_is_refused(desk, text) -> None:
    with pytest.raises(InputError):
        add_comment(item=desk.items[0], author=desk.ann, text=text)
    assert not Comment.objects.exists()


def test_a_work_item_of_another_item_is_refused(desk) -> None:
    task = desk.claim()
    other = next(item for item in desk.items if item != task.item)
    with pytest.raises(InputError):
        add_comment(item=other, author=desk.ann, text="x", work_item=task.work_item)


def test_a_flag_is_resolved_once_and_by_somebody(desk) -> None:
    flag = add_comment(item=desk.items[0], author=desk.ann, text="", is_flag=True)
    assert resolve_flag(comment=flag, actor=desk.ben).resolved_by == desk.ben
    with pytest.raises(ConflictError):
        resolve_flag(comment=flag, actor=desk.ann)
    comment = add_comment(item=desk.items[0], author=desk.ann, text="x")
    with pytest.raises(ConflictError):
        resolve_flag(comment=comment, actor=desk.ben)


def test_the_audit_trail_does_not_say_which_item_it_is(desk) -> None:
    task = desk.claim()
    flag = add_comment(item=task.item, author=desk.ann, text="Odd.", is_flag=True, work_item=task.work_item)
    resolve_flag(comment=flag, actor=desk.ben)
    events = AuditEvent.objects.filter(target=f"comment:{flag.pk}").order_by("pk")
    assert [event.action for event in events] == ["item.flagged", "flag.resolved"]
    assert all(event.data == {} for event in events)
