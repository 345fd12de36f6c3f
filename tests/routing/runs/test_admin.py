"""Lists of the administration: nothing is asked row by row, and nothing long comes along."""

import pytest
from django.contrib import admin
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from annotation.models import User
from routing.delivery.deliver import deliver
from testbed.worlds import make_world

pytestmark = [pytest.mark.django_db, pytest.mark.costly]

# What models answered, what items say, and how the thresholds were found: up to megabytes each.
LONG = ['"raw"', '"annotation_item"."text"', '"annotation_item"."data"', '"chains"', '"draw_lines"']


def test_a_list_takes_as_many_queries_however_many_rows_it_shows() -> None:
    world = make_world(120)
    deliver(run=world.complete(), user=world.manager)
    world.do("deliver_run")
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    full = 0
    for model in admin.site._registry:
        if model._meta.app_label not in ("annotation", "routing"):
            continue
        with CaptureQueriesContext(connection) as queries:
            page = client.get(reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist"))
        assert page.status_code == 200
        full += len(page.context["cl"].result_list) == 50
        assert len(queries) <= 6, model
        sql = " ".join(query["sql"] for query in queries)
        assert not [name for name in LONG if name in sql], model
    assert full >= 6
