"""The navigation leads to what its number counts."""

import pytest
from django.urls import reverse

from annotation.models import Comment
from testbed.factories import make_items

pytestmark = pytest.mark.django_db


def test_where_only_flags_wait_review_opens_with_the_flags(owner, project) -> None:
    address = reverse("review", args=[project.slug])
    assert f'href="{address}?waiting=1"' in owner.get(address).content.decode()
    assert owner.get(address, {"waiting": "1"}).status_code == 200
    Comment.objects.create(item=make_items(project, 1)[0], author=project.created_by, text="?", is_flag=True)
    assert owner.get(address, {"waiting": "1"}).url == reverse("review_flags", args=[project.slug])
    # Whoever chooses the tab of disagreements gets it.
    assert owner.get(address).status_code == 200
