"""What each delivery of a project holds, whether what its certificate says still stands, and what its formats
cannot carry.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.utils.translation import override

from annotation.models import Job, Project
from routing.core_language import stored_in_words
from routing.delivery.card import part_words
from routing.delivery.formats import FORMATS
from routing.models import Delivery, DeliveryFile
from routing.runs.people_agreement import NOTHING_KNOWN, agreement_in_words, nothing_certified


@dataclass(frozen=True)
class FormatLimit:
    """`count`: how many cells of the delivery it concerns; None where it was not counted."""

    kind: str
    words: str
    count: int | None


@dataclass(frozen=True)
class FormatLimits:
    """Of formats that share their limits: the names of their files, and the limits, none for an exact one."""

    files: list[str]
    limits: list[FormatLimit]


def format_limits(counted: Mapping[str, Mapping[str, int]] | None = None) -> list[FormatLimits]:
    """Of the formats in `counted`, which has what their writers counted; without it of all formats."""
    together: dict[tuple[tuple[str, int | None], ...], FormatLimits] = {}
    for name, writer in FORMATS.items():
        if counted is not None and name not in counted:
            continue
        counts: Mapping[str, Any] = counted[name] if counted is not None else {}
        limits = [FormatLimit(kind, str(words), counts.get(kind)) for kind, words, _ in writer.limits]
        key = tuple((limit.words, limit.count) for limit in limits)
        together.setdefault(key, FormatLimits([], limits)).files.append(writer.file_name)
    return list(together.values())


DELIVER = "deliver_run"


@dataclass(frozen=True)
class DeliveryReport:
    """`reasons` and `sources` count rows without and with a label; they and `partial`, whether people were
    still at work, are None for a delivery whose job is gone or older than these counts, and `limits`, what
    its formats cannot carry, is empty then. `part` says in words that a delivery is a part; else it is empty.
    """

    delivery: Delivery
    files: Sequence[DeliveryFile]
    certified: bool
    sentence: str
    sentence_in_words: str
    certificate_id: str
    broken_by: list[str]
    reasons: list[tuple[str, int]] | None
    sources: list[tuple[str, int]] | None
    partial: bool | None
    limits: list[FormatLimits]
    part: str

    @property
    def items(self) -> int:
        """Of the project, when it was made."""
        return self.delivery.rows if self.delivery.items is None else self.delivery.items

    @property
    def rows_file(self) -> DeliveryFile | None:
        """The file with the labelled rows that most programs open."""
        by_name = {file.name: file for file in self.files}
        return next((by_name[one.file_name] for one in FORMATS.values() if one.file_name in by_name), None)

    @property
    def labelled(self) -> int:
        return self.delivery.rows - self.delivery.blanks


def deliveries_of(project: Project) -> QuerySet[Delivery]:
    """With all that a report of one reads."""
    return (
        Delivery.objects.filter(run__project=project)
        .select_related("run__certificate", "created_by", "since__run")
        .defer("run__certificate__draw_lines", "run__certificate__figures")
        .prefetch_related("files__file")
    )


def delivery_reports(project: Project, deliveries: Iterable[Delivery]) -> list[DeliveryReport]:
    """Of these, rows of `deliveries_of`."""
    deliveries = list(deliveries)
    made = project.jobs.filter(kind=DELIVER, state=Job.State.DONE)
    made = made.filter(result__delivery__in=[delivery.pk for delivery in deliveries])
    results = made.values_list("result", flat=True)
    by_delivery = {result["delivery"]: result for result in results if result.get("made", True)}
    return [_report(delivery, by_delivery.get(delivery.pk, {})) for delivery in deliveries]


def _report(delivery: Delivery, result: dict[str, object]) -> DeliveryReport:
    run = delivery.run
    certified, sentence, in_words, certificate_id = _promise(delivery)
    return DeliveryReport(
        delivery=delivery,
        files=list(delivery.files.all()),
        certified=certified,
        sentence=sentence,
        sentence_in_words=in_words,
        certificate_id=certificate_id,
        broken_by=run.broken_by,
        reasons=_counted(result.get("by_reason")),
        sources=_counted(result.get("by_source")),
        partial=bool(result["partial"]) if "partial" in result else None,
        limits=_limits(result.get("formats")),
        part=part_words(run, rows=delivery.rows, items=delivery.items or 0) if delivery.is_part else "",
    )


def _promise(delivery: Delivery) -> tuple[bool, str, str, str]:
    """Whether something is certified, the sentence, the same in the language of the reader, and the id of the
    certificate, "" where people alone labelled: then the sentence says how far they agree.
    """
    run = delivery.run
    if run.by_people:
        with override("en"):
            sentence = _said_of_people(delivery)
        return False, sentence, _said_of_people(delivery), ""
    certificate = run.certificate
    sentence = str(json.loads(certificate.document)["result"]["sentence"])
    in_words = stored_in_words(certificate.messages.get("sentence", []), sentence)
    return certificate.certified, sentence, in_words, certificate.sha256


def _said_of_people(delivery: Delivery) -> str:
    return " ".join([nothing_certified(), *agreement_in_words(delivery.two_people or NOTHING_KNOWN)])


def _limits(counted: object) -> list[FormatLimits]:
    return format_limits(counted) if isinstance(counted, dict) else []


def _counted(counts: object) -> list[tuple[str, int]] | None:
    """The largest first."""
    if not isinstance(counts, dict):
        return None
    return sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
