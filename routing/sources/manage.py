"""The models of a project: add, change and remove them."""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Max, Q, RestrictedError
from django.utils.translation import gettext as _

from annotation.common import audit, limits
from annotation.common.locks import locked_project
from annotation.common.one_line import checked_line
from annotation.errors import ConflictError, InputError
from annotation.imports.columns import shown_columns
from annotation.models import Project, User
from annotation.outside.secrets import decrypt, encrypt
from routing.common.states import BUSY, UNDER_WAY
from routing.models import ModelPrice, PromptCandidate, Run, RunSource, Source
from routing.sources import storable
from routing.sources.backend_for import current_prompt, task_spec
from routing.sources.backends import BACKENDS, Backend, Prompt, SourceContext, backend_class, open_backend
from routing.sources.backends.params import Column
from routing.sources.mends import mends_of, with_mends
from routing.sources.prices import cost_function_named, prices_as_stored, refuse_unknown_usage
from routing.sources.prompt_versions import add_version, checked_prompt, is_new_version

MAX_KEY = 4_000

__all__ = [
    "backend_names",
    "delete_source",
    "move_source",
    "refuse_in_use",
    "run_in_use",
    "save_prompt",
    "save_source",
]


def backend_names() -> list[str]:
    return sorted(BACKENDS)


def save_source(
    *,
    project: Project,
    user: User,
    name: str,
    backend: str,
    params: dict[str, Any],
    cost_per_label: Decimal,
    cost_function: str = "flat",
    prices: Mapping[str, Any] | None = None,
    price: ModelPrice | None = None,
    prompt: Prompt | None = None,
    api_key: str | None = None,
    position: int | None = None,
    source: Source | None = None,
) -> Source:
    """Add a model, or change `source`. Without `position` a new one comes last.

    `prices` are those that the cost function needs, as text; a flat cost is `cost_per_label` itself, which
    for the others is the average that plans reckon with. With `price`, a line of the price list, both come
    from there. Runs keep the prices they were started with. `prompt` becomes a new version where it differs
    from the one in force, which None keeps; `api_key` None keeps the stored key, "" removes it.

    Asks the model's server, outside the transaction, and stores what it says that it serves. Under a run that
    is under way only that may change which shapes no answer: its fingerprint stays (an address, a limit of
    speed, a time-out). The run takes it up with its next job, or the next attempt of this one.

    Raises InputError where a field cannot be used (`where` names it: a field, a parameter of the
    backend, a part of the prompt, or a price), BackendError where the server cannot be asked, and
    ConflictError where a run that is under way rests on what would be changed.
    """
    if source is None or name.strip() != source.name:
        name = checked_line(name, where="name")
    prompt = checked_prompt(project, backend, prompt)
    if price is not None:
        if price.project_id != project.pk:
            raise InputError(_("This project has no such line in its price list."), where="price")
        cost_function, prices = price.cost_function, price.prices
    key = _key(source, backend, params, api_key)
    context = SourceContext(
        task=task_spec(project),
        prompt=prompt or (current_prompt(source) if source else None),
        api_key=key,
        source=source.pk if source else None,
    )
    opened = open_backend(backend, params, context)
    _refuse_unstorable(params)
    _refuse_unknown_columns(project, opened, params)
    _refuse_shown_columns(project, opened, params)
    _refuse_images(project, opened)
    stored_prices = _prices(opened, name, cost_function, prices or {})
    served = opened.check()
    fingerprint = ""
    if source is not None and source.backend == backend and source.params != params and run_in_use(source):
        asked = open_backend(backend, params, replace(context, served=source.served))
        fingerprint = with_mends(asked.fingerprint(), mends_of(source))
    with transaction.atomic():
        locked_project(project.pk)  # one change of positions at a time
        new_prompt = prompt is not None and is_new_version(source, prompt)
        changed = True
        if source is not None:
            source = Source.objects.select_for_update(no_key=True).get(pk=source.pk, project=project)
            changed = new_prompt or (source.backend, source.params) != (backend, params)
            if changed:
                refuse_in_use(source, fingerprint="" if new_prompt else fingerprint)
        if source is None:
            limits.refuse_more(
                Source.objects.filter(project=project),
                limits.SOURCES,
                _("A project has at most %(most)s sources. Remove one that no run uses."),
                code="too_many_sources",
            )
        target = source or Source(project=project)
        target.name, target.backend, target.params = name.strip(), backend, params
        target.cost_per_label = cost_per_label
        target.cost_function, target.prices, target.price = cost_function, stored_prices, price
        if not run_in_use(target):  # a run is to notice by itself that its server has changed
            target.served = served
        if api_key is not None or not backend_class(backend).has_key():
            target.api_key = encrypt(key)
        if position is None:
            last = project.sources.aggregate(last=Max("position"))["last"] or 0
            target.position = target.position or last + 1
        else:
            target.position = position
        _check(target)
        target.save()
        version = add_version(source=target, user=user, prompt=prompt) if prompt and new_prompt else None
        audit.record(
            project=project,
            actor=user,
            action="source.changed" if source else "source.added",
            target=f"source:{target.pk}",
            data={
                "name": target.name,
                "backend": backend,
                "cost_per_label": str(cost_per_label),
                "cost_function": cost_function,
                "prices": stored_prices,
                "has_key": bool(target.api_key),
                **({"prompt": version.number} if version else {}),
            },
        )
    return target


def save_prompt(*, source: Source, user: User, prompt: Prompt) -> Source:
    """Ask the source with another prompt from now on: a new version, where it differs from the one in force.

    Raises InputError and ConflictError as `save_source` does; asks no server.
    """
    checked = checked_prompt(source.project, source.backend, prompt)
    with transaction.atomic():
        source = Source.objects.select_for_update(no_key=True).get(pk=source.pk)
        if checked is not None and is_new_version(source, checked):
            refuse_in_use(source)
            version = add_version(source=source, user=user, prompt=checked)
            audit.record(
                project=source.project,
                actor=user,
                action="source.prompt_changed",
                target=f"source:{source.pk}",
                data={"name": source.name, "prompt": version.number},
            )
    return source


def move_source(*, source: Source, user: User, up: bool) -> Source:
    """Change places with the source before (`up`) or behind. At an end of the list nothing happens.

    Raises ConflictError while a run is under way: its sources are asked in the order in which it was planned.
    """
    project = source.project
    with transaction.atomic():
        locked_project(project.pk)  # one change of positions at a time
        if run := project.runs.filter(state__in=UNDER_WAY).first():
            raise ConflictError(
                _("Run %(run)s is under way with the models in this order. Finish or cancel it first.")
                % {"run": run.number},
                code="order_in_use",
            )
        source.refresh_from_db()
        before, behind = Q(position__lt=source.position), Q(position__gt=source.position)
        found = project.sources.filter(before if up else behind).order_by("position")
        other = found.last() if up else found.first()
        if other is None:
            return source
        here, there = source.position, other.position
        # By way of a free place: no two sources have one place at any moment.
        free = (project.sources.aggregate(last=Max("position"))["last"] or 0) + 1
        for row, position in ((source, free), (other, here), (source, there)):
            row.position = position
            row.save(update_fields=["position"])
        audit.record(
            project=project,
            actor=user,
            action="source.moved",
            target=f"source:{source.pk}",
            data={"name": source.name, "from": here, "to": there},
        )
    return source


def delete_source(*, source: Source, user: User) -> None:
    """Remove a model. Raises ConflictError where a run or a payment names it."""
    never_run = PromptCandidate.objects.filter(source=source, fingerprint="")
    name, project, pk = source.name, source.project, source.pk
    try:
        with transaction.atomic():
            never_run.delete()
            source.delete()
            audit.record(
                project=project,
                actor=user,
                action="source.deleted",
                target=f"source:{pk}",
                data={"name": name},
            )
    except RestrictedError:
        raise ConflictError(
            _("%(name)s belongs to a run or was paid for answers, and stays, so that these can be explained.")
            % {"name": name},
            code="source_of_a_run",
        ) from None


def _check(source: Source) -> None:
    try:
        source.full_clean()
    except ValidationError as error:
        others = source.project.sources.exclude(pk=source.pk)
        if others.filter(name=source.name).exists():
            raise InputError(_("Another source has this name."), where="name") from None
        if others.filter(position=source.position).exists():
            raise InputError(_("Another source has this place."), where="position") from None
        field, messages = next(iter(error.message_dict.items()))
        raise InputError(" ".join(messages), where=field) from None


def _refuse_unstorable(params: Mapping[str, Any]) -> None:
    wrong = next((name for name, value in params.items() if not storable.fits([name, value])), None)
    if wrong is not None:
        message = _("it has a character that cannot be stored (NUL or half of a surrogate pair)")
        raise InputError(f"{message[:1].upper()}{message[1:]}.", where=wrong)


def _prices(backend: Backend, name: str, cost_function: str, prices: Mapping[str, Any]) -> dict[str, str]:
    """The prices as they are stored. Raises InputError where one cannot be used, and where the answers of the
    backend do not tell what they would be multiplied with.
    """
    function = cost_function_named(cost_function)
    if function.name == "flat":
        if prices:
            raise InputError(_("The price of a flat cost is the price per label."), where="prices")
        return {}
    stored = prices_as_stored(function, prices)
    refuse_unknown_usage(function, backend.usage, name.strip() or "this source")
    return stored


def run_in_use(source: Source) -> Run | None:
    """The run whose models may still be called, of which the source is one."""
    return Run.objects.filter(run_sources__source=source.pk, state__in=BUSY).first() if source.pk else None


def refuse_in_use(source: Source, *, fingerprint: str = "") -> None:
    """Raises ConflictError where a run that is under way rests on the source as it is. `fingerprint` is that
    of the source after the change, "" where it is another one in any case.
    """
    rows = RunSource.objects.filter(source=source.pk, run__state__in=BUSY).select_related("run")
    if row := next((row for row in rows if row.fingerprint != fingerprint), None):
        raise ConflictError(
            _(
                "Run %(run)s is under way with %(source)s as it is: only what shapes no answer can "
                "be changed, such as the address of the same model, limits of speed and time-outs. "
                "Cancel the run first, or add another source."
            )
            % {"run": row.run.number, "source": source.name},
            code="source_in_use",
        )


def _key(source: Source | None, backend: str, params: Mapping[str, Any], api_key: str | None) -> str:
    """The plain key for the server: the new one, or the stored one, which no other server is ever sent.

    Raises InputError where the stored one would have to go to another server than it was entered for: whoever
    may change a source could otherwise have it sent to a server of theirs.
    """
    if not backend_class(backend).has_key():
        if api_key:
            raise InputError(
                _("A source of the kind %(backend)s has no key.") % {"backend": backend}, where="api_key"
            )
        return ""
    if api_key is not None:
        key = api_key.strip()
        if not all("!" <= sign <= "~" for sign in key) or len(key) > MAX_KEY:
            raise InputError(
                _("A key is made of at most %(max_key)s letters, digits and signs, without spaces within.")
                % {"max_key": f"{MAX_KEY:,}"},
                where="api_key",
            )
        return key
    if source is None or not source.api_key:
        return ""
    if _servers(source.backend, source.params) != _servers(backend, params):
        raise InputError(
            _("The stored key was entered for another server. Enter the key for this one, or remove it."),
            where="api_key",
        )
    return decrypt(source.api_key, where="api_key")


def _servers(backend: str, params: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Where a key is sent: scheme, host and port of each param that the backend declares as an address."""
    return {_origin(str(params.get(name) or "")) for name in backend_class(backend).addresses()}


def _origin(address: str) -> tuple[str, str]:
    try:
        parts = urlsplit(address.strip())
    except ValueError:
        return "", ""
    return parts.scheme.lower(), parts.netloc.lower()


def _refuse_images(project: Project, backend: Backend) -> None:
    if backend.prompted and project.items.filter(image__isnull=False).exists():
        raise InputError(
            _(
                "This project has images, and language models are sent text only. Choose another "
                "kind of source."
            ),
            where="backend",
        )


def _refuse_shown_columns(project: Project, backend: Backend, params: dict[str, Any]) -> None:
    """Whoever labels must not read the answers of a model on the item itself."""
    seen = backend.hidden_columns() & shown_columns(project)
    if not seen:
        return
    column = min(seen)
    raise InputError(
        _(
            "People who label see the column “%(column)s”, so that it cannot be a model's answer. Import the "
            "items without showing it, into a new project or after taking the import back."
        )
        % {"column": column},
        where=next((name for name, value in params.items() if value == column), ""),
    )


def _refuse_unknown_columns(project: Project, backend: Backend, params: dict[str, Any]) -> None:
    """A column that no import brought is a typing error, most likely.

    Imports may differ in their columns: an item that lacks one goes to the next source. A project without
    columns is not asked.
    """
    if not project.columns:
        return
    for name in (param.name for param in backend.params if isinstance(param, Column)):
        if (column := params.get(name)) and column not in project.columns:
            raise InputError(
                _("The imported data has no column %(column)r; it has %(names)s.")
                % {"column": column, "names": ", ".join(project.columns)},
                where=name,
            )
