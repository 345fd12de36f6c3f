"""Reading a certificate and its draw back from their files; whatever is malformed is named, never guessed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from decimal import Decimal
from itertools import pairwise
from math import isfinite
from typing import Any, NoReturn

import numpy as np

from routing.core.bins import Bins
from routing.core.calibration_rows import CalibrationRow
from routing.core.certificate import FORMAT, NEWEST
from routing.core.chain import Chain, Policy
from routing.core.exact import plain
from routing.core.keys import V_MAX, Key, Threshold
from routing.core.plan import SPLIT_SHARE, Plan

ROW = {"order", "item_id", "position", "asked", "p", "u", "v", "label", "answers"}
OF_LATER_MODELS = {"own", "called"}
OF_PEOPLE = {"annotator", "person"}
LATER, MEASURED = {"later"}, {"losses"}
"""What a line of ``draw.jsonl`` holds; under `every_score`, where an expert is the reference, and
where models answered after the second commitment; and of a loss that is measured elsewhere."""
DECIMAL = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,60})?")
"""As plans and draws write numbers: with millions of digits, or an exponent, one takes hours to read."""


class DocumentError(ValueError):
    """A certificate or a draw that cannot be read; the message says where."""


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys all differ: of two values under one key, another reader may take the other."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)!r} stands there twice")
    return found


def _read(text: str) -> Any:
    return json.loads(text, parse_constant=_no_constant, object_pairs_hook=_no_repeats)


def parse_document(data: bytes) -> dict[str, Any]:
    """A certificate from the bytes of its file."""
    try:
        document = _read(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise DocumentError(f"certificate: no JSON in UTF-8 ({error})") from None
    if not isinstance(document, dict):
        raise DocumentError("certificate: no JSON object")
    if document.get("format") != FORMAT:
        raise DocumentError(f"certificate: its format is {document.get('format')!r}, expected {FORMAT!r}")
    if type(document.get("version")) is not int or not 1 <= document["version"] <= NEWEST:
        raise DocumentError(
            f"certificate: version {document.get('version')!r} is unknown here; this program reads 1 to "
            f"{NEWEST}"
        )
    return document


def parse_draw(data: bytes) -> list[CalibrationRow]:
    """The rows of ``draw.jsonl``, in file order."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DocumentError(f"draw: no UTF-8 ({error})") from None
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    if not lines:
        raise DocumentError("draw: the file is empty")
    return [parse_row(line, number) for number, line in enumerate(lines, start=1)]


def parse_plan(document: Mapping[str, Any]) -> Plan:
    """The plan of a certificate."""
    plan = _mapping(document, "plan")
    try:
        costs = plan["costs"]
        if not isinstance(costs, list):
            raise DocumentError("certificate: plan.costs is no list")
        return Plan(
            epsilon=_decimal(plan["epsilon"]),
            alpha=_decimal(plan["alpha"]),
            target=_text(plan, "target"),
            m=_whole(plan, "m"),
            p=_decimal(plan["p"]),
            pool_size=_whole(plan, "pool_size"),
            costs=tuple(_decimal(cost) for cost in costs),
            bound=_text(plan, "bound"),
            rule=_text(plan, "rule"),
            loss=_text(plan, "loss"),
            pilot_size=_whole(plan, "pilot_size"),
            loss_params=_mapping(plan, "loss_params") if "loss_params" in plan else {},
            p_min=_decimal(plan["p_min"]) if "p_min" in plan else None,
            split_share=_decimal(plan["split_share"]) if "split_share" in plan else SPLIT_SHARE,
            data_set_size=_whole(plan, "data_set_size") if "data_set_size" in plan else None,
            alpha_spent=_decimal(plan["alpha_spent"]) if "alpha_spent" in plan else None,
        )
    except KeyError as error:
        raise DocumentError(f"certificate: the plan lacks {error}") from None
    except DocumentError:
        raise
    except ValueError as error:
        raise DocumentError(f"certificate: plan: {error}") from None


def parse_chains(document: Mapping[str, Any]) -> tuple[Chain, ...]:
    """The chains of a certificate, without the outcome of their tests."""
    chains = document.get("chains")
    if not isinstance(chains, list) or not chains:
        raise DocumentError("certificate: there are no chains")
    result = []
    for number, chain in enumerate(chains):
        where = f"certificate: chain {number}"
        try:
            policies = tuple(_parse_policy(policy) for policy in chain["policies"])
            if len({sum(policy.counts) for policy in policies}) > 1:
                raise ValueError("the counts of its policies do not add up to the same number of items")
            result.append(Chain(str(chain["name"]), policies))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise DocumentError(f"{where} cannot be read: {type(error).__name__}: {error}") from None
    return tuple(result)


def parse_slices(document: Mapping[str, Any]) -> Bins | None:
    """The slices that a chain was learnt along; None where the certificate has none."""
    return read_slices(_mapping(document, "slices")) if "slices" in document else None


def read_slices(slices: Mapping[str, Any]) -> Bins:
    """Slices from what `slices_document` made of them; enough to learn a chain along."""
    try:
        ends = tuple(parse_threshold(end) for end in slices["ends"])
        sizes = np.array([_whole({"sizes": size}, "sizes") for size in slices["sizes"]], dtype=np.int64)
        rho = np.array([float(rank) for rank in slices["rho"]], dtype=np.float64)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise DocumentError(f"certificate: slices: {type(error).__name__}: {error}") from None
    keys = [end for end in ends if end is not None]
    rising = all(first < second for first, second in pairwise(keys))
    if not keys or not len(keys) == len(ends) == len(sizes) == len(rho) or not rising or sizes.min() < 1:
        raise DocumentError(
            "certificate: slices: there must be equally many ends, rising, sizes of at least 1, and ranks"
        )
    return Bins(tuple(keys), sizes, rho, np.empty(0))


def _parse_policy(policy: Mapping[str, Any]) -> Policy:
    thresholds = tuple(parse_threshold(entry) for entry in policy["thresholds"])
    counts = tuple(_whole({"counts": count}, "counts") for count in policy["counts"])
    if len(counts) != len(thresholds) + 1 or min(counts) < 0:
        raise ValueError(f"{counts!r} are no counts of items, one per source and none below 0")
    return Policy(
        thresholds=thresholds,
        counts=counts,
        model_cost=_cost(policy, "model_cost"),
        people_cost=_cost(policy, "people_cost"),
    )


def _cost(policy: Mapping[str, Any], key: str) -> float:
    value = policy[key]
    # Not "at least 0": what is left of a sum from which all was taken away may miss zero by a rounding.
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise ValueError(f"{key!r} is no number: {value!r}")
    return float(value)


def parse_threshold(entry: object) -> Threshold:
    if entry is None:
        return None
    if not isinstance(entry, list) or len(entry) != 2:
        raise ValueError(f"{entry!r} is no threshold; expected null or [u, v]")
    u, v = entry
    if isinstance(v, bool) or not isinstance(v, int) or isinstance(u, bool) or not isinstance(u, int | float):
        raise ValueError(f"{entry!r} is no threshold; expected null or [u, v]")
    if not 0 <= v <= V_MAX or not 0 <= u <= 1:
        raise ValueError(f"the threshold {entry!r} is outside [0, 1] or its tie-break outside [0, 2**53)")
    return Key(float(u), v)


def parse_row(line: str, number: int) -> CalibrationRow:
    """One row of ``draw.jsonl``; ``number`` counts from 1 for messages."""
    where = f"draw, line {number}"
    try:
        row = _read(line)
    except (ValueError, RecursionError) as error:
        raise DocumentError(f"{where}: no JSON ({error})") from None
    if not isinstance(row, dict):
        raise DocumentError(f"{where}: no JSON object")
    unknown = sorted(row.keys() - ROW - OF_LATER_MODELS - OF_PEOPLE - LATER - MEASURED)
    if unknown:
        raise DocumentError(f"{where}: {unknown[0]!r} is no part of a row")
    try:
        asked, label, answers, u = row["asked"], row["label"], row["answers"], row["u"]
        if not isinstance(asked, bool):
            raise DocumentError("'asked' is neither true nor false")
        if label is not None and not isinstance(label, str):
            raise DocumentError("'label' is neither text nor null")
        if not isinstance(answers, list) or not all(a is None or isinstance(a, str) for a in answers):
            raise DocumentError("'answers' is no list of texts and nulls")
        if isinstance(u, bool) or not isinstance(u, int | float):
            raise DocumentError("'u' is no number")
        for text in (row["item_id"], label, *answers):
            str(text).encode()  # half of a surrogate pair, which JSON can name, is no text
        annotator, person = _of_people(row)
        p = _decimal(row["p"])
        if plain(p) != row["p"]:
            raise DocumentError(f"'p' is {row['p']!r}, and a draw writes it as {plain(p)!r}")
        return CalibrationRow(
            item_id=_text(row, "item_id"),
            position=_whole(row, "position"),
            order=_whole(row, "order"),
            asked=asked,
            p=p,
            u=float(u),
            v=_whole(row, "v"),
            label=label,
            answers=tuple(answers),
            own=tuple(parse_threshold(entry) for entry in _list(row, "own")),
            called=_truths(row),
            annotator=annotator,
            person=person,
            later=_positions(row),
            losses=_losses(row),
        )
    except KeyError as error:
        raise DocumentError(f"{where}: it lacks {error}") from None
    except (ValueError, OverflowError) as error:
        raise DocumentError(f"{where}: {error}") from None


def _list(row: Mapping[str, Any], key: str) -> list[Any]:
    """A list that need not be there, and has an entry where it is."""
    value = row.get(key, [])
    if not isinstance(value, list) or (key in row and not value):
        raise DocumentError(f"{key!r} is no list with entries: {value!r}")
    return value


def _truths(row: Mapping[str, Any]) -> tuple[bool, ...]:
    called = _list(row, "called")
    if not all(isinstance(entry, bool) for entry in called):
        raise DocumentError(f"'called' is no list of true and false: {called!r}")
    return tuple(called)


def _positions(row: Mapping[str, Any]) -> tuple[int, ...]:
    later = _list(row, "later")
    if not all(type(place) is int and 1 <= place <= len(row["answers"]) for place in later):
        raise DocumentError(f"'later' is no list of positions of models: {later!r}")
    if later != sorted(set(later)):
        raise DocumentError(f"'later' is not in order: {later!r}")
    return tuple(later)


def _losses(row: Mapping[str, Any]) -> tuple[float | None, ...]:
    losses = _list(row, "losses")
    for loss in losses:
        if loss is not None and (isinstance(loss, bool) or not isinstance(loss, int | float)):
            raise DocumentError(f"'losses' is no list of numbers and nulls: {losses!r}")
    return tuple(None if loss is None else float(loss) for loss in losses)


def _of_people(row: Mapping[str, Any]) -> tuple[str, str | None]:
    """Whose item it is and her label: both or neither stand there."""
    if not row.keys() & OF_PEOPLE:
        return "", None
    annotator, person = row["annotator"], row["person"]
    if not isinstance(annotator, str) or not annotator:
        raise DocumentError(f"'annotator' is no name: {str(annotator)[:60]!r}")
    if person is not None and not isinstance(person, str):
        raise DocumentError("'person' is neither text nor null")
    f"{annotator}{person}".encode()  # half of a surrogate pair is no text
    return annotator, person


def _decimal(value: object) -> Decimal:
    if not isinstance(value, str) or not DECIMAL.fullmatch(value):
        raise ValueError(f"{str(value)[:60]!r} is no text of a decimal number that a plan can have")
    return Decimal(value)


def _mapping(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = document.get(key)
    if not isinstance(value, dict):
        raise DocumentError(f"certificate: {key!r} is missing or no object")
    return value


def _text(mapping: Mapping[str, Any], key: str) -> str:
    value = mapping[key]
    if not isinstance(value, str):
        raise DocumentError(f"{key!r} is no text: {value!r}")
    return value


def _whole(mapping: Mapping[str, Any], key: str) -> int:
    value = mapping[key]
    if isinstance(value, bool) or not isinstance(value, int):
        raise DocumentError(f"{key!r} is no whole number: {value!r}")
    return value
