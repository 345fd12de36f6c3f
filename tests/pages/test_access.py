"""Every address x method x role, against a table written by hand here: an address that it lacks fails."""

import io
from collections.abc import Iterator

import pytest
from django.db import transaction
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.utils import timezone

from annotation.common.files import store_file
from annotation.labelling import queue
from annotation.labelling.comments import add_comment
from annotation.models import BucketSync, Connection, HeldOutItem, Label, Project, WorkItem
from annotation.outside.secrets import encrypt
from annotation.outside.webhooks.manage import create_webhook, send_test
from annotation.people.invitations import create_invitation
from annotation.people.tokens import make_token
from routing.models import Delivery, DeliveryFile, GuidelineRound, ModelPrice, SavedView
from testbed.factories import PASSWORD, add_member, made_account, make_image_items, make_project, make_user
from testbed.worlds import World, make_world

pytestmark = [pytest.mark.costly, pytest.mark.database]

ROLES = ("owner", "manager", "reviewer", "annotator", "viewer")
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
EVERYBODY = set(ROLES)
LEADERS = {"owner", "manager"}
LABELLERS = {"owner", "manager", "reviewer", "annotator"}
NOT_ANNOTATORS = {"owner", "manager", "reviewer", "viewer"}
SEERS = {"owner", "manager", "viewer"}
OWNERS = {"owner"}
REVIEWERS = {"owner", "manager", "reviewer"}

# name of the address: ({method: roles that may}, other parts of the address)
PAGES: dict[str, dict[str, set[str]]] = {
    "overview": {"GET": EVERYBODY},
    "progress": {"GET": NOT_ANNOTATORS},
    "project_manage": {"GET": LEADERS},
    "project_archive": {"POST": LEADERS},
    "project_unarchive": {"POST": LEADERS},
    "project_duplicate": {"POST": LEADERS},
    "project_delete": {"POST": OWNERS},
    "project_settings": {"GET": LEADERS, "POST": LEADERS},
    "project_label_config": {"GET": EVERYBODY},
    "import_upload": {"GET": LEADERS, "POST": LEADERS},
    "import_mapping": {"GET": LEADERS, "POST": LEADERS},
    "import_undo": {"POST": LEADERS},
    "image": {"GET": EVERYBODY},
    "annotate": {"GET": LABELLERS},
    "annotate_mine": {"GET": LABELLERS},
    "practice": {"GET": LABELLERS, "POST": LABELLERS},
    "annotate_submit": {"POST": LABELLERS},
    "annotate_correct": {"POST": LABELLERS},
    "annotate_skip": {"POST": LABELLERS},
    "annotate_undo": {"POST": LABELLERS},
    "annotate_heartbeat": {"POST": LABELLERS},
    "annotate_release": {"POST": LABELLERS},
    "annotate_ahead": {"POST": LABELLERS},
    "annotate_flag": {"POST": LABELLERS},
    "annotate_shortcuts": {"POST": LABELLERS},
    "work_decide": {"POST": LEADERS},
    "agreement": {"GET": NOT_ANNOTATORS},
    "review": {"GET": LABELLERS - {"annotator"}},
    "review_decide": {"POST": LABELLERS - {"annotator"}},
    "review_count": {"GET": LABELLERS - {"annotator"}},
    "review_flags": {"GET": LABELLERS - {"annotator"}},
    "flag_resolve": {"POST": LABELLERS - {"annotator"}},
    "members": {"GET": NOT_ANNOTATORS},
    "member_add": {"POST": OWNERS},
    "member_create": {"POST": OWNERS},
    "member": {"GET": NOT_ANNOTATORS},
    "member_role": {"POST": OWNERS},
    "member_limits": {"POST": OWNERS},
    "member_active": {"POST": OWNERS},
    "member_reset": {"POST": OWNERS},
    "invitation_new": {"POST": OWNERS},
    "invitation_revoke": {"POST": OWNERS},
    "member_remove": {"POST": OWNERS},
    "jobs": {"GET": NOT_ANNOTATORS},
    "job": {"GET": NOT_ANNOTATORS},
    "job_problems": {"GET": NOT_ANNOTATORS},
    "job_cancel": {"POST": LEADERS},
    "job_pause": {"POST": LEADERS},
    "job_resume": {"POST": LEADERS},
    "job_retry": {"POST": LEADERS},
    "job_try_now": {"POST": LEADERS},
    "audit": {"GET": LEADERS},
    "webhooks": {"GET": LEADERS},
    "webhook_new": {"POST": LEADERS},
    "webhook": {"GET": LEADERS},
    "webhook_save": {"POST": LEADERS},
    "webhook_active": {"POST": LEADERS},
    "webhook_delete": {"POST": LEADERS},
    "webhook_rotate": {"POST": LEADERS},
    "webhook_test": {"POST": LEADERS},
    "webhook_redeliver": {"POST": LEADERS},
    "items": {"GET": NOT_ANNOTATORS},
    "items_change": {"POST": REVIEWERS},
    "item_correct": {"POST": REVIEWERS},
    "items_views": {"POST": NOT_ANNOTATORS},
    "items_view": {"POST": NOT_ANNOTATORS},
    "items_changed": {"GET": REVIEWERS},
    "items_change_undo": {"POST": REVIEWERS},
    "item": {"GET": NOT_ANNOTATORS},
    "item_erase": {"POST": LEADERS},
    "item_comment": {"POST": REVIEWERS},
    "item_flag_resolve": {"POST": REVIEWERS},
    "sources": {"GET": LEADERS, "POST": LEADERS},
    "source_suggested": {"POST": LEADERS},
    "source_new": {"GET": LEADERS, "POST": LEADERS},
    "source_edit": {"GET": LEADERS, "POST": LEADERS},
    "source_delete": {"POST": LEADERS},
    "source_move": {"POST": LEADERS},
    "source_health": {"GET": LEADERS},
    "source_mends": {"POST": LEADERS},
    "source_prompt": {"GET": LEADERS, "POST": LEADERS},
    "source_try": {"GET": LEADERS, "POST": LEADERS},
    "source_try_price": {"POST": LEADERS},
    "candidates": {"GET": LEADERS, "POST": LEADERS},
    "candidates_rounds": {"POST": LEADERS},
    "candidates_label": {"GET": LEADERS, "POST": LEADERS},
    "candidate_new": {"GET": LEADERS, "POST": LEADERS},
    "candidate": {"GET": LEADERS, "POST": LEADERS},
    "candidate_use": {"POST": LEADERS},
    "source_predictions": {"GET": LEADERS, "POST": LEADERS},
    "prices": {"GET": LEADERS, "POST": LEADERS},
    "price_edit": {"GET": LEADERS, "POST": LEADERS},
    "price_delete": {"POST": LEADERS},
    "plan": {"GET": LEADERS, "POST": LEADERS},
    "plan_outlook": {"GET": LEADERS},
    "people_run": {"GET": LEADERS, "POST": LEADERS},
    "held_out": {"GET": LEADERS, "POST": LEADERS},
    "held_out_settings": {"POST": LEADERS},
    "held_out_answer": {"POST": LEADERS},
    "held_out_release": {"POST": LEADERS},
    "person_resume": {"POST": LEADERS},
    "rounds": {"GET": EVERYBODY, "POST": LEADERS},
    "round": {"GET": EVERYBODY},
    "round_close": {"POST": LEADERS},
    "round_note": {"POST": LABELLERS},
    "label_set": {"GET": LEADERS, "POST": LEADERS},
    "label_set_choose": {"GET": LEADERS, "POST": LEADERS},
    "runs": {"GET": NOT_ANNOTATORS},
    "run": {"GET": NOT_ANNOTATORS},
    "run_evidence": {"GET": NOT_ANNOTATORS},
    "run_plan": {"GET": NOT_ANNOTATORS},
    "run_analyse": {"POST": LEADERS},
    "run_route": {"POST": LEADERS},
    "run_take_in": {"POST": LEADERS},
    "run_order": {"POST": LEADERS},
    "run_ask_expert": {"POST": LEADERS},
    "run_ask_losses": {"POST": LEADERS},
    "run_hand_over": {"POST": LEADERS},
    "run_final_audit": {"POST": LEADERS},
    "run_analyse_final_audit": {"POST": LEADERS},
    "run_final_certificate": {"GET": SEERS},
    "run_cancel": {"POST": LEADERS},
    "run_accept_unusable": {"POST": LEADERS},
    "run_budget": {"POST": LEADERS},
    "run_deliver": {"POST": LEADERS},
    "run_certificate": {"GET": NOT_ANNOTATORS},
    "run_certificate_page": {"GET": NOT_ANNOTATORS},
    "run_draw": {"GET": SEERS},
    "run_draw_value": {"POST": LEADERS},
    "run_commitment": {"GET": LEADERS},
    "deliveries": {"GET": SEERS},
    "delivery_export": {"POST": LEADERS},
    "connections": {"GET": LEADERS},
    "connection_new": {"GET": LEADERS, "POST": LEADERS},
    "connection_edit": {"GET": LEADERS, "POST": LEADERS},
    "connection_test": {"POST": LEADERS},
    "connection_delete": {"POST": LEADERS},
    "import_browse": {"POST": LEADERS},
    "bucket_sync": {"GET": LEADERS, "POST": LEADERS},
    "bucket_sync_now": {"POST": LEADERS},
    "bucket_sync_end": {"POST": LEADERS},
    "import_fetch": {"POST": LEADERS},
    "delivery_file": {"GET": SEERS},
    "delivery_zip": {"GET": SEERS},
}
# Of the programming interface. Each project address answers OPTIONS as well, and says nothing there.
API: dict[str, dict[str, set[str]]] = {
    "api_project": {"GET": EVERYBODY, "PATCH": LEADERS, "DELETE": OWNERS},
    "api_project_archive": {"POST": LEADERS},
    "api_project_unarchive": {"POST": LEADERS},
    "api_project_duplicate": {"POST": LEADERS},
    "api_choices": {"GET": EVERYBODY, "PUT": LEADERS},
    "api_label_config": {"GET": EVERYBODY},
    "api_members": {"GET": NOT_ANNOTATORS, "POST": OWNERS},
    "api_member": {"GET": NOT_ANNOTATORS, "PATCH": OWNERS, "DELETE": OWNERS},
    "api_invitations": {"GET": OWNERS, "POST": OWNERS},
    "api_invitation": {"GET": OWNERS, "DELETE": OWNERS},
    "api_files": {"GET": LEADERS, "POST": LEADERS},
    "api_file": {"GET": LEADERS, "DELETE": LEADERS},
    "api_file_preview": {"GET": LEADERS},
    "api_imports": {"POST": LEADERS},
    "api_items": {"GET": NOT_ANNOTATORS, "POST": LEADERS},
    "api_item": {"GET": NOT_ANNOTATORS},
    "api_item_lines": {"GET": NOT_ANNOTATORS},
    "api_image": {"GET": EVERYBODY},
    "api_image_link": {"POST": EVERYBODY},
    "api_labels": {"GET": EVERYBODY},
    "api_label": {"GET": EVERYBODY},
    "api_label_lines": {"GET": EVERYBODY},
    "api_jobs": {"GET": NOT_ANNOTATORS},
    "api_job": {"GET": NOT_ANNOTATORS},
    "api_job_problems": {"GET": NOT_ANNOTATORS},
    "api_job_cancel": {"POST": LEADERS},
    "api_job_retry": {"POST": LEADERS},
    "api_job_try_now": {"POST": LEADERS},
    "api_job_undo": {"POST": LEADERS},
    "api_work": {"GET": LEADERS},
    "api_work_decide": {"POST": LEADERS},
    "api_reviews": {"GET": REVIEWERS, "POST": REVIEWERS},
    "api_flags": {"GET": REVIEWERS},
    "api_flag_resolve": {"POST": REVIEWERS},
    "api_agreement": {"GET": NOT_ANNOTATORS},
    "api_audit": {"GET": LEADERS},
    "api_job_pause": {"POST": LEADERS},
    "api_job_resume": {"POST": LEADERS},
    "api_overview": {"GET": NOT_ANNOTATORS},
    "api_progress": {"GET": NOT_ANNOTATORS},
    "api_sources": {"GET": NOT_ANNOTATORS, "POST": LEADERS},
    "api_source": {"GET": LEADERS, "PUT": LEADERS, "DELETE": LEADERS},
    "api_prices": {"GET": LEADERS, "POST": LEADERS},
    "api_price": {"GET": LEADERS, "PUT": LEADERS, "DELETE": LEADERS},
    "api_source_health": {"GET": LEADERS},
    "api_source_mends": {"GET": LEADERS, "PUT": LEADERS},
    "api_source_prompts": {"GET": LEADERS},
    "api_source_try": {"GET": LEADERS, "POST": LEADERS},
    "api_development_items": {"GET": LEADERS, "POST": LEADERS},
    "api_candidates": {"GET": LEADERS, "POST": LEADERS},
    "api_candidate": {"GET": LEADERS},
    "api_candidate_run": {"POST": LEADERS},
    "api_candidate_use": {"POST": LEADERS},
    "api_plan": {"GET": LEADERS, "POST": LEADERS},
    "api_plan_measure": {"GET": LEADERS, "POST": LEADERS, "DELETE": LEADERS},
    "api_runs": {"GET": NOT_ANNOTATORS, "POST": LEADERS},
    "api_people_runs": {"POST": LEADERS},
    "api_people_outlook": {"POST": LEADERS},
    "api_held_out": {"GET": LEADERS, "POST": LEADERS},
    "api_held_out_item": {"PUT": LEADERS, "DELETE": LEADERS},
    "api_checking": {"GET": LEADERS, "PATCH": LEADERS},
    "api_resume": {"POST": LEADERS},
    "api_rounds": {"GET": LEADERS, "POST": LEADERS},
    "api_round": {"GET": LEADERS},
    "api_round_close": {"POST": LEADERS},
    "api_round_notes": {"POST": LABELLERS},
    "api_replaced_choices": {"GET": LEADERS, "POST": LEADERS},
    "api_replaced_choices_outlook": {"POST": LEADERS},
    "api_replaced_choices_to_choose": {"GET": LEADERS, "POST": LEADERS},
    "api_run": {"GET": NOT_ANNOTATORS},
    "api_run_accept_unusable": {"POST": LEADERS},
    "api_run_budget": {"PUT": LEADERS},
    "api_run_certificate": {"GET": NOT_ANNOTATORS},
    "api_run_draw": {"GET": SEERS},
    "api_run_draw_value": {"POST": LEADERS},
    "api_run_commitment": {"GET": LEADERS},
    "api_ledger": {"GET": NOT_ANNOTATORS},
    "api_run_analyse": {"POST": LEADERS},
    "api_run_route": {"GET": NOT_ANNOTATORS, "POST": LEADERS},
    "api_run_take_in": {"POST": LEADERS},
    "api_run_order": {"POST": LEADERS},
    "api_run_work": {"GET": LEADERS, "POST": LEADERS},
    "api_run_work_cvat": {"GET": LEADERS, "POST": LEADERS},
    "api_run_work_lines": {"GET": LEADERS},
    "api_run_roster": {"GET": NOT_ANNOTATORS},
    "api_run_ask_expert": {"POST": LEADERS},
    "api_run_ask_losses": {"POST": LEADERS},
    "api_run_losses": {"GET": LEADERS, "POST": LEADERS},
    "api_run_losses_lines": {"GET": LEADERS},
    "api_run_hand_over": {"POST": LEADERS},
    "api_run_final_audit": {"GET": NOT_ANNOTATORS, "POST": LEADERS},
    "api_run_analyse_final_audit": {"POST": LEADERS},
    "api_run_final_certificate": {"GET": SEERS},
    "api_run_cancel": {"POST": LEADERS},
    "api_deliver": {"POST": LEADERS},
    "api_deliveries": {"GET": SEERS},
    "api_delivery": {"GET": SEERS},
    "api_delivery_zip": {"GET": SEERS},
    "api_delivery_file": {"GET": SEERS},
    "api_predictions": {"GET": SEERS},
    "api_prediction_lines": {"GET": SEERS},
    "api_source_predictions": {"POST": LEADERS},
    "api_table": {"GET": NOT_ANNOTATORS},
    "api_items_erase": {"POST": LEADERS},
    "api_saved_views": {"GET": NOT_ANNOTATORS, "POST": NOT_ANNOTATORS},
    "api_saved_view": {"DELETE": NOT_ANNOTATORS},
    "api_item_changes": {"POST": REVIEWERS},
    "api_item_change_undo": {"POST": REVIEWERS},
    "api_delivery_export": {"POST": LEADERS},
    "api_connections": {"GET": LEADERS, "POST": LEADERS},
    "api_connection": {"GET": LEADERS, "PATCH": LEADERS, "DELETE": LEADERS},
    "api_connection_test": {"POST": LEADERS},
    "api_connection_fetch": {"POST": LEADERS},
    "api_connection_list": {"POST": LEADERS},
    "api_connection_sync": {"GET": LEADERS, "PUT": LEADERS, "DELETE": LEADERS},
    "api_connection_sync_now": {"POST": LEADERS},
    "api_connection_sync_files": {"GET": LEADERS},
    **{
        f"api_label_studio{of}_{name}": {method: SEERS}
        for of in ("", "_run", "_source")
        for name, method in (("health", "GET"), ("setup", "POST"), ("versions", "GET"), ("predict", "POST"))
    },
    "api_webhooks": {"GET": LEADERS, "POST": LEADERS},
    "api_webhook": {"GET": LEADERS, "PATCH": LEADERS, "DELETE": LEADERS},
    "api_webhook_rotate": {"POST": LEADERS},
    "api_webhook_test": {"POST": LEADERS},
    "api_webhook_deliveries": {"GET": LEADERS},
    "api_webhook_delivery": {"GET": LEADERS},
    "api_webhook_redeliver": {"POST": LEADERS},
    "api_practice": {"GET": LABELLERS, "POST": LABELLERS},
    "api_queue_claim": {"POST": LABELLERS},
    "api_queue_ahead": {"POST": LABELLERS},
    "api_queue_mine": {"GET": LABELLERS},
    "api_queue_flag": {"POST": LABELLERS},
    "api_queue_submit": {"POST": LABELLERS},
    "api_queue_skip": {"POST": LABELLERS},
    "api_queue_heartbeat": {"POST": LABELLERS},
    "api_queue_release": {"POST": LABELLERS},
    "api_queue_undo": {"POST": LABELLERS},
    "api_queue_correct": {"POST": LABELLERS},
}
SIGNED_IN: dict[str, set[str]] = {
    "project_list": {"GET"},
    "project_new": {"GET", "POST"},
    "project_sample": {"POST"},
    "glossary": {"GET"},
    "help_index": {"GET"},
    "help_document": {"GET"},
    "logout": {"POST"},
    "account": {"GET", "POST"},
    "account_data": {"GET"},
    "account_erase": {"POST"},
    "log_out_elsewhere": {"POST"},
    "mail_ask": {"POST"},
    "mail_confirm": {"GET", "POST"},
    "go": {"GET"},
    "password": {"GET", "POST"},
    "tokens": {"GET", "POST"},
    "token_revoke": {"POST"},
    "second_factor": {"GET"},
    "app_set_up": {"GET", "POST"},
    "app_remove": {"GET", "POST"},
    "passkey_new": {"GET", "POST"},
    "passkey_create": {"GET", "POST"},
    "passkey_remove": {"GET", "POST"},
    "recovery_codes": {"GET", "POST"},
    "invitation_accept": {"POST"},
    "invitation_decline": {"POST"},
    "api_own_invitations": {"GET"},
    "api_own_invitation_accept": {"POST"},
    "api_own_invitation_decline": {"POST"},
    "api_root": {"GET"},
    "api_me": {"GET"},
    "api_tokens": {"GET", "POST"},
    "api_token": {"DELETE"},
    "api_projects": {"GET", "POST"},
    "api_model_presets": {"GET"},
}
PUBLIC: dict[str, set[str]] = {
    "login": {"GET", "POST"},
    "second_step": {"GET", "POST"},
    "passkey_log_in": {"GET", "POST"},
    "sign_on": {"GET"},
    "sign_on_done": {"GET"},
    "sign_on_log_out": {"POST"},
    "password_forgotten": {"GET", "POST"},
    "password_reset": {"GET", "POST"},
    "mail_ends": {"GET", "POST"},
    "join": {"GET", "POST"},
    "join_link": {"GET"},
    "image_link": {"GET"},
    "health": {"GET"},
    "ready": {"GET"},
    "metrics": {"GET"},
    "security_txt": {"GET"},
    "api_schema": {"GET"},
    "api_docs": {"GET"},
    "api_errors": {"GET"},
    "api_error": {"GET"},
    "api_nothing_here": set(METHODS),
    "api_label_studio_nothing_here": set(METHODS),
    **{
        f"api_label_studio{of}_{name}": {"POST"}
        for of in ("", "_run", "_source")
        for name in ("webhook", "train")
    },
}


Found = tuple[tuple[str, ...], URLPattern]


def addresses(
    patterns: list[URLPattern | URLResolver] | None = None, names: tuple[str, ...] = ()
) -> Iterator[Found]:
    """(namespaces, pattern) of every address of the site."""
    for entry in get_resolver().url_patterns if patterns is None else patterns:
        if isinstance(entry, URLResolver):
            yield from addresses(entry.url_patterns, (*names, *filter(None, [entry.namespace])))
        else:
            yield names, entry


@pytest.fixture
def world(db: None) -> World:
    return make_world(60)


@pytest.fixture
def arguments(world: World) -> dict[str, object]:
    """Parts of addresses that lead to something, so that nothing is 404 because it is not there yet."""
    run = world.routed(m=40)
    image = make_image_items(world.project, 1)[0].image
    stored = store_file(
        project=world.project,
        content=io.BytesIO(b"text\nhello\n"),
        original_name="more.csv",
        media_type="text/csv",
    )
    delivery = Delivery.objects.create(run=run, number=1, rows=1, blanks=0)
    DeliveryFile.objects.create(delivery=delivery, name="labels.csv", file=stored)
    webhook, _secret = create_webhook(
        project=world.project, actor=world.manager, url="https://example.org/", events=["run.routed"]
    )
    item = world.project.items.first()
    asked = queue.create_batch(
        project=world.project, item_ids=[item.pk], blind=False, priority=1, entropy=1, overlap=2
    )
    GuidelineRound.objects.create(
        project=world.project,
        number=run.number,
        batch=asked,
        by_name=True,
        created_by=world.manager,
        closed_by=world.manager,
        closed_at=timezone.now(),
    )
    return {
        "slug": world.project.slug,
        "document": "plans",
        "file_id": stored.pk,
        "sha256": image.sha256,
        "work_item_id": WorkItem.objects.first().pk,
        "user_id": made_account(world.project)[0].pk,  # one whose password an owner may have set
        "invitation_id": create_invitation(
            project=world.project, actor=world.manager, role="annotator", max_uses=1, days=1
        )[0].pk,
        "job_id": world.project.jobs.first().pk,
        "item_id": world.project.items.first().pk,
        "view_id": SavedView.objects.create(project=world.project, name="all of us").pk,
        "label_id": Label.objects.first().pk,
        "held_id": HeldOutItem.objects.create(
            project=world.project,
            item=world.project.items.last(),
            purpose="practice",
            at_random=False,
            created_by=world.manager,
        ).pk,
        "comment_id": add_comment(
            item=world.project.items.first(), author=world.manager, text="odd", is_flag=True
        ).pk,
        "source_id": world.project.sources.first().pk,
        "price_id": ModelPrice.objects.create(
            project=world.project, name="small", cost_function="tokens", prices={"per_token": "1"}
        ).pk,
        "number": run.number,
        "delivery_id": delivery.pk,
        "which": 1,
        "connection_id": synchronised(world).connection_id,
        "webhook_id": webhook.pk,
        "sent_id": send_test(webhook=webhook, actor=world.manager).pk,
        "name": "labels.csv",
    }


def synchronised(world: World) -> BucketSync:
    """With a file that was found. Asked by a test, the store is refused before anything is sent."""
    connection = Connection.objects.create(
        project=world.project,
        name="store",
        endpoint="http://127.0.0.1:9",
        bucket="bucket",
        access_key="key",
        secret=encrypt("secret"),
        created_by=world.manager,
    )
    sync = BucketSync.objects.create(connection=connection, user=world.manager)
    words = "The file has no column “text”; it has a, b."
    sync.files.create(key="in/a.csv", size=10, state="refused", error=words, changed_at=timezone.now())
    return sync


BODY_COMES_FIRST = {
    *("api_round_notes", "api_run_order", "api_run_work", "api_run_hand_over", "api_run_losses"),
    *(f"api_label_studio_{of}_{what}" for of in ("run", "source") for what in ("setup", "predict")),
}


def address(name: str, arguments: dict[str, object]) -> str:
    """Its parts are those of the pattern and of those that it is included by."""
    parts = get_resolver().reverse_dict.getlist(name)[0][3]
    return reverse(name, kwargs={key: arguments[key] for key in parts})


def test_every_address_is_in_a_table() -> None:
    known = {*PAGES, *API, *SIGNED_IN, *PUBLIC}
    named = [(names, entry) for names, entry in addresses() if "admin" not in names]
    assert {entry.name for _, entry in named} == known
    assert all(entry.name for _, entry in named)


def test_every_page_carries_its_mark() -> None:
    for names, entry in addresses():
        if "admin" not in names and not entry.name.startswith("api_"):
            mark = getattr(entry.callback, "needed_action", None)
            expected = "public" if entry.name in PUBLIC else "signed_in" if entry.name in SIGNED_IN else None
            assert mark is not None, entry.name
            assert expected in (None, mark), entry.name


@pytest.mark.django_db
def test_pages_of_a_project(world: World, arguments: dict[str, object]) -> None:
    """Strangers get 404, members whose role may not 403.

    A method that an address lacks is refused before anybody's role is read: one member and one stranger ask.
    By HEAD ask those who may not read, and owners: for others it is GET once more. Whoever was removed is a
    stranger, and asks each address once.
    """
    wrong = []
    for role in (*ROLES, "nobody", "other project", "removed"):
        client = _client(role, world.project)
        for name, table in {**PAGES, **API}.items():
            path = address(name, arguments)
            for method in METHODS:
                allowed = table.get("GET" if method == "HEAD" else method)
                if allowed is None and role not in ("owner", "nobody"):
                    continue
                if method == "HEAD" and allowed is not None and role != "owner" and role in allowed:
                    continue
                if role == "removed" and method != next(iter(table)):
                    continue
                point = transaction.savepoint()
                status = client.generic(method, path).status_code
                transaction.savepoint_rollback(point)
                if verdict := _verdict(role, table, allowed, status, method, api=name in API):
                    wrong.append(f"{method} {name} as {role}: {status}, {verdict}")
    assert wrong == []


@pytest.mark.django_db
def test_programs_may_what_their_people_may(world: World, arguments: dict[str, object]) -> None:
    """By a token, which may be capped to a role or be for one project. Roles that a cap gives are not asked
    once more without one.
    """
    project = world.project
    tokens: list[tuple[str, str]] = []  # whom it is to be treated as, and the token
    for role in ("owner", "manager"):
        tokens.append((role, make_token(user=add_member(project, role), name=role)[1]))
    for role in ("annotator", "viewer", "reviewer"):
        owner = add_member(project, "owner")
        tokens.append((role, make_token(user=owner, name=f"owner as {role}", role=role)[1]))
    both = add_member(project, "annotator")
    tokens.append(("annotator", make_token(user=both, name="annotator as owner", role="owner")[1]))
    elsewhere = make_project(both)
    tokens.append(("other project", make_token(user=both, name="elsewhere", project=elsewhere)[1]))
    wrong = []
    for role, secret in tokens:
        client = Client(raise_request_exception=False, headers={"Authorization": f"Token {secret}"})
        for name, table in API.items():
            path = address(name, arguments)
            if role == "other project" and name == "api_project_duplicate":
                continue  # no such token makes projects, whichever is named: 403 tells nothing of this one
            for method, allowed in table.items():
                point = transaction.savepoint()
                status = client.generic(method, path).status_code
                transaction.savepoint_rollback(point)
                if verdict := _verdict(role, table, allowed, status, method, api=True):
                    wrong.append(f"{method} {name} by a token as {role}: {status}, {verdict}")
    assert wrong == []


@pytest.mark.django_db
def test_a_token_sees_no_more_by_head_than_by_get(world: World, arguments: dict[str, object]) -> None:
    owner = add_member(world.project, "owner")
    secrets = [
        make_token(user=owner, name="role", role="viewer")[1],
        make_token(user=owner, name="project", project=world.project)[1],
    ]
    parts = {**arguments, "path": "nowhere/", "token_id": 1, "code": "not_found"}
    refused = 0
    for secret in secrets:
        client = Client(raise_request_exception=False, headers={"Authorization": f"Token {secret}"})
        for name in (name for name in {**API, **SIGNED_IN, **PUBLIC} if name.startswith("api_")):
            path = address(name, parts)
            status = client.get(path).status_code
            assert client.head(path).status_code == status, (name, secret)
            refused += status == 403
    assert refused


def _client(role: str, project: Project) -> Client:
    client = Client(raise_request_exception=False)
    if role == "other project":
        stranger = make_user("stranger")
        make_project(stranger)
        client.force_login(stranger)
    elif role == "removed":
        leaver = add_member(project, "owner")
        client.force_login(leaver)
        leaver.memberships.all().delete()
    elif role != "nobody":
        client.force_login(add_member(project, role))
    return client


def _verdict(
    role: str, table: dict[str, set[str]], allowed: set[str] | None, status: int, method: str, *, api: bool
) -> str:
    """What is wrong with the status; "" where it is right."""
    if status >= 500:
        return "an error of the server"
    if role == "nobody":
        return "" if status == (401 if api else 302) else "expected to be asked to log in"
    if role in ("other project", "removed"):
        return "" if status in ((404, 405) if api else (404,)) else "expected 404"
    if allowed is not None:
        if role in allowed:
            return "expected to be let in" if status in (401, 403, 405) else ""
        return "" if status == 403 else "expected 403"
    if api:
        return "" if status in (403, 405) else "expected 405"
    may_anything = any(role in roles for roles in table.values())
    expected = (302 if method in ("GET", "HEAD") else 405) if may_anything else 403
    return "" if status == expected else f"expected {expected}"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("name", "of", "page"),
    [
        ("webhook_new", {}, "webhooks"),
        ("invitation_new", {}, "members"),
        ("member_add", {}, "members"),
        ("held_out_settings", {}, "held_out"),
        ("run_route", {"number": 7}, "runs"),
    ],
)
def test_the_address_of_a_form_leads_to_the_page_that_has_it(
    client: Client, name: str, of: dict[str, int], page: str
) -> None:
    project = make_project()
    client.force_login(project.created_by)
    for follows in (client.get, client.head):
        response = follows(reverse(name, kwargs={"slug": project.slug, **of}))
        assert response.status_code == 302
        above = reverse(page, kwargs={"slug": project.slug})
        assert response.url.startswith(above)
    viewer = add_member(project, "viewer")
    client.force_login(viewer)
    assert client.get(reverse("webhook_new", args=[project.slug])).status_code == 403


@pytest.mark.django_db
def test_pages_without_a_project() -> None:
    nobody, somebody = Client(), Client()
    user = make_user("somebody")
    for name, allowed in {**SIGNED_IN, **PUBLIC}.items():
        for method in METHODS:
            user.refresh_from_db()  # one of these ends all other sessions
            somebody.force_login(user)
            path = address(
                name,
                {
                    **{"uidb64": "MQ", "token": "no-such-token", "path": "nowhere/", "token_id": 1},
                    "code": "not_found",
                    "document": "plans",
                    "passkey_id": 1,
                    **{"slug": "no-such", "number": 1, "source_id": 1, "invitation_id": 1, "name": "none"},
                },
            )
            anonymous = nobody.generic(method, path).status_code
            known = somebody.generic(method, path).status_code
            possible = ("GET" if method == "HEAD" else method) in allowed
            if name in SIGNED_IN:
                assert anonymous == (401 if name.startswith("api_") else 302), (name, method)
            else:
                assert (anonymous != 405) == possible, (name, method)
            assert (known != 405) == possible, (name, method)


@pytest.mark.django_db
def test_the_admin_is_for_staff(client_of) -> None:
    client = client_of(add_member(make_project(), "owner"))
    for names, entry in addresses():
        plain = not entry.pattern.converters and entry.pattern.regex.groups == 0
        if "admin" in names and plain and entry.name and entry.name not in ("login", "logout"):
            path = reverse(f"admin:{entry.name}")
            assert client.get(path).status_code in (302, 404), path


@pytest.mark.django_db
def test_nothing_is_found_through_another_project(world: World, arguments: dict[str, object]) -> None:
    """Ids of one project under the address of another one, by somebody who may do everything there."""
    mallory = make_user("mallory")
    other = make_project(mallory)
    client = Client()
    client.force_login(mallory)
    before = Label.objects.count()
    for name, table in PAGES.items():
        path = address(name, {**arguments, "slug": other.slug})
        pattern = next(entry for _, entry in addresses() if entry.name == name)
        if set(pattern.pattern.converters) == {"slug"}:
            continue
        for method in table:
            data = {"work_item": str(arguments["work_item_id"])}
            assert client.generic(method, path).status_code == 404, (name, method)
            assert client.post(path, data).status_code in (404, 405), name
    for name in ("annotate_submit", "annotate_skip", "annotate_heartbeat"):
        data = {
            "work_item": str(arguments["work_item_id"]),
            "token": "x",
            "value": "cat",
            "reason": "unclear",
        }
        assert client.post(address(name, {"slug": other.slug}), data).status_code == 404, name
    theirs = {"label": str(Label.objects.first().pk), "value": "cat", "idempotency_key": "k"}
    assert client.post(address("annotate_correct", {"slug": other.slug}), theirs).status_code == 404
    assert Label.objects.count() == before
    found = set()
    for name, table in API.items():
        parts = get_resolver().reverse_dict.getlist(name)[0][3]
        if "slug" in parts and len(parts) > 1:
            path = address(name, {**arguments, "slug": other.slug})
            answers = [client.generic(method, path).status_code for method in table]
            # Of these an empty body is refused before anything is looked up.
            refused = 400 if name in BODY_COMES_FIRST else 404
            found |= {(name, status) for status in answers if status not in (404, refused)}
    assert found == set()


@pytest.mark.django_db
def test_every_form_needs_its_token(project, client_of) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(project.created_by)
    answer = client.post(reverse("member_add", args=[project.slug]), {"add-username": "x"})
    assert answer.status_code == 403
    assert "out of date" in answer.content.decode()


@pytest.mark.django_db
class TestLoggingIn:
    def test_the_way_in_leads_to_the_page_that_was_wanted(self, project) -> None:
        client = Client()
        wanted = reverse("overview", args=[project.slug])
        asked = client.get(wanted)
        assert asked.url == f"/login/?next={wanted}"
        page = client.get(asked.url)
        assert f'name="next" value="{wanted}"' in page.content.decode()
        user = project.created_by
        answer = client.post("/login/", {"username": user.username, "password": PASSWORD, "next": wanted})
        assert answer.url == wanted

    def test_sending_a_form_is_no_place_to_return_to(self, project) -> None:
        wanted = reverse("annotate_submit", args=[project.slug])
        answer = Client().post(
            "/login/",
            {"username": project.created_by.username, "password": PASSWORD, "next": wanted},
        )
        assert answer.url == "/"

    @pytest.mark.parametrize("wanted", ["https://elsewhere.example/", "//elsewhere.example/", "javascript:x"])
    def test_no_way_leads_elsewhere(self, wanted: str, project) -> None:
        fields = {"username": project.created_by.username, "password": PASSWORD, "next": wanted}
        assert Client().post("/login/", fields).url == "/"

    def test_a_part_of_a_page_sends_the_whole_page_to_log_in(self, project) -> None:
        path = reverse("overview", args=[project.slug])
        answer = Client().get(path, headers={"HX-Request": "true"}, follow=True)
        assert answer.headers["HX-Redirect"].startswith("/login/?next=")

    def test_what_was_typed_stays_after_a_wrong_password(self, project) -> None:
        answer = Client().post("/login/", {"username": "ann", "password": "wrong"})
        page = answer.content.decode()
        assert answer.status_code == 200
        assert 'value="ann"' in page
        assert 'role="alert"' in page

    def test_too_many_wrong_passwords_lock_the_account_for_a_while(self, project, settings) -> None:
        settings.AXES_FAILURE_LIMIT = 3
        client = Client()
        user = project.created_by.username
        for _ in range(3):
            answer = client.post("/login/", {"username": user, "password": "wrong"})
        assert answer.status_code == 429
        assert "Too many attempts" in answer.content.decode()
        answer = client.post("/login/", {"username": user, "password": PASSWORD})
        assert answer.status_code == 429


class TestPassword:
    def test_somebody_changes_the_one_that_an_owner_gave_them(self, project) -> None:
        client = Client()
        client.force_login(project.created_by)
        other_device = Client()
        other_device.force_login(project.created_by)
        new = "a-better-one-4711"
        fields = {"old_password": PASSWORD, "new_password1": new, "new_password2": new}
        wrong = client.post("/password/", fields | {"old_password": "no"})
        assert wrong.status_code == 200
        assert 'role="alert"' in wrong.content.decode()
        assert client.post("/password/", fields).url == "/"
        assert "is changed" in client.get("/").content.decode()
        assert other_device.get("/").url.startswith("/login/")
        project.created_by.refresh_from_db()
        assert project.created_by.check_password(new)
