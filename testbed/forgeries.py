"""Forged deliveries: an edit somewhere, and then every hash put right, as a careful forger would."""

import hashlib
import json
import random
import re
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from routing.labels.page import ADDED

Files = dict[str, bytes]
Node = Any
WITHOUT_MEANING = {
    "certificate.json: version": "3 and 2 say the same where nothing is certified",
    "certificate.json: plan.pilot_size": "the size of the pilot decides about forecasts and prices alone",
    "certificate.json: plan.costs": "prices decide which certified policy is taken, and what it saves",
    "certificate.json: chains.policies.model_cost": "as prices",
    "certificate.json: chains.policies.people_cost": "as prices",
    "certificate.json: chains.policies.pilot_paid": "as prices",
    "certificate.json: chains.policies.cost": "as prices",
    "certificate.json: chains.policies.thresholds": "a step that goes past no item and is not taken is "
    "the same; that it was fixed beforehand is on trust",
    "certificate.json: chains.policies.move": "as thresholds",
    "certificate.json: chains.policies[]": "a whole step that is not taken; as thresholds",
    "certificate.json: chains.name": "what a chain is called that is not taken",
    "certificate.json: slices.models_cost": "as prices",
    "certificate.json: slices.people_cost": "as prices",
    "certificate.json: slices.rho": "the rank of a slice, which no test reads",
    "certificate.json: slices.ends": "an end that moves past no item",
    "certificate.json: scores.chains.policies.pilot_paid": "as prices",
    "certificate.json: scores.chains.policies.thresholds": "as thresholds of `chains`",
    "certificate.json: scores.chains.policies[]": "as those of `chains`",
    "certificate.json: scores.chains.name": "what a chain is called that is not taken",
    "certificate.json: reference.expert_cost": "as prices",
    "certificate.json: result.expected_net_cost": "money",
    "certificate.json: result.expected_net_saving": "money",
    "certificate.json: result.expected_routing_saving": "money",
    "certificate.json: provenance": "names, words, prices, fingerprints; not run and ledger",
    "final_audit.json: frame.hash": "of labels that are not published",
    "draw.jsonl: answers": "on trust; an answer that still agrees, or still differs, changes no count",
    "draw.jsonl: own": "on trust; a score that goes past no threshold changes no count",
    "draw.jsonl: called": "on trust, where no test needs the answer",
    "labels.jsonl: label": "of an item that nobody was asked about: that the answer is the model's, and the "
    "label the person's, is on trust",
    "labels.jsonl: label_name": "what a choice is called",
    "labels.jsonl: annotator": "who it was",
    "labels.jsonl: settled_by": "how several people were made one",
    "labels.jsonl: run": "of a person's label",
    "labels.jsonl: expert_saw": "a reason in place of another, or a column that deliveries once lacked",
    "labels.jsonl: source": "a later model's in place of another's, whose scores the file does not hold",
    "labels.jsonl: external_id": "of an item that the certificate does not cover",
    "labels.jsonl: uncertainty": "of an item that was not drawn, where it goes past no threshold",
    "labels.jsonl: *": "the imported columns",
}
"""By field, without places in lists: why an edit there may be found by nobody, the hashes being put right. A
field stands for all that is in it, but for `WITH_MEANING`; one that ends in [] for an entry as a whole."""
LINES = ("draw.jsonl", "labels.jsonl")
DOCUMENTS = ("certificate.json", "final_audit.json", "manifest.json")


def canonical(document: Node) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def read(files: Files, name: str) -> Node:
    """A document, or the list of a file's lines."""
    if name in LINES:
        return [json.loads(line) for line in files[name].splitlines()]
    return json.loads(files[name])


def written(name: str, node: Node) -> bytes:
    if name == "draw.jsonl":
        return b"".join(canonical(row) for row in node)
    if name == "labels.jsonl":
        return "".join(
            json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in node
        ).encode()
    return canonical(node)


def put_right(files: Files) -> Files:
    """The same files with the hash of the draw, the certificate's id and the manifest as they follow."""
    files = dict(files)
    before = re.search(rb"- Certificate: ([0-9a-f]{64})", files["README.md"])
    document = json.loads(files["certificate.json"])
    if isinstance(document, dict) and isinstance(document.get("draw"), dict):
        document["draw"]["sha256"] = hashlib.sha256(files["draw.jsonl"]).hexdigest()
    files["certificate.json"] = canonical(document)
    after = hashlib.sha256(files["certificate.json"]).hexdigest().encode()
    for name in files:
        if before and name not in ("certificate.json", "draw.jsonl"):
            files[name] = files[name].replace(before[1], after)
    if "manifest.json" in files:
        files["manifest.json"] = manifest(files)
    return files


def manifest(files: Files) -> bytes:
    named = {
        name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for name, data in files.items()
        if name != "manifest.json"
    }
    document = {"files": named, "format": "hypac-manifest", "version": 1}
    return json.dumps(document, ensure_ascii=False, indent=1, sort_keys=True).encode() + b"\n"


def forged(files: Files, name: str, change: Callable[[Node], object]) -> Files:
    """The files with one of them changed in place by `change`, and every hash put right."""
    node = read(files, name)
    changed = change(node)
    return put_right(files | {name: written(name, node if changed is None else changed)})


def random_edit(files: Files, draws: random.Random) -> tuple[str, str, Files] | None:
    """A random value changed, deleted or duplicated: the field, what was done, and the files; None where
    nothing is another afterwards.
    """
    there = [name for name in (*DOCUMENTS, *LINES) if name in files]
    name = draws.choices(there, weights=[5 if name == "certificate.json" else 2 for name in there])[0]
    node = read(files, name)
    path, holder, key = _somewhere(node, draws)
    before = written(name, node)
    what = draws.choice((change, delete, duplicate))
    if (to := what(holder, key, draws)) is not None:
        path = re.sub(r"[^.\[\]]+$", to, path)
    edited = files | {name: written(name, node)}
    # Who changes the manifest alone leaves it so.
    edited = edited if name == "manifest.json" else put_right(edited)
    if written(name, node) == before or edited == files:
        return None
    return f"{name}: {path}", what.__name__, edited


WITH_MEANING = (
    "certificate.json: provenance.run",
    "certificate.json: provenance.alpha_ledger",
    "certificate.json: provenance.alpha_total",
)
"""What lies in a field without meaning, and has one."""


def without_meaning(field: str) -> str:
    """By which entry of `WITHOUT_MEANING` an edit of a field need not be found; '' where it has to be."""
    name, _, path = field.partition(": ")
    plain = path.replace("[]", "").lstrip(".")
    if f"{name}: {plain}".startswith(WITH_MEANING):
        return ""
    if path.endswith("[]") and f"{name}: {plain}[]" in WITHOUT_MEANING:
        return f"{name}: {plain}[]"
    if name == "labels.jsonl" and plain.partition(".")[0] not in ADDED:
        return "labels.jsonl: *"
    fitting = [known for known in WITHOUT_MEANING if f"{name}: {plain}.".startswith(f"{known}.")]
    return max(fitting, key=len, default="")


def _somewhere(node: Node, draws: random.Random) -> tuple[str, Node, Any]:
    """A value somewhere in it: the pattern of its path, what holds it, and its key there."""
    path, holder, key = "", node, None
    while True:
        inside = holder if key is None else holder[key]
        if not isinstance(inside, dict | list) or not inside or (key is not None and draws.random() < 0.1):
            return path, holder, key
        holder = inside
        key = draws.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
        path += f".{key}" if isinstance(holder, dict) else "[]"
        path = path.lstrip(".")


def change(holder: Node, key: Any, draws: random.Random) -> None:
    value = holder[key]
    if isinstance(value, bool):
        holder[key] = draws.choice([not value, None, int(value)])
    elif isinstance(value, int):
        holder[key] = draws.choice(
            [value + 1, value - 1, value + draws.randrange(2, 100), float(value), str(value)]
        )
    elif isinstance(value, float):
        holder[key] = draws.choice([value + 1e-6, value / 2, value + 1, -value, str(value)])
    elif isinstance(value, str):
        place = draws.randrange(len(value) + 1)
        holder[key] = draws.choice(
            [value[:place] + "7" + value[place:], value[:place] + value[place + 1 :], None]
        )
    elif value is None:
        holder[key] = draws.choice([0, "", "x", False, [0.5, 1]])
    else:
        holder[key] = draws.choice([None, type(value)(), 0])


def delete(holder: Node, key: Any, draws: random.Random) -> None:
    del holder[key]


def duplicate(holder: Node, key: Any, draws: random.Random) -> str | None:
    """In place of another value in an object, whose name this returns, or once more in a list."""
    if isinstance(holder, list):
        holder.insert(draws.randrange(len(holder) + 1), deepcopy(holder[key]))
        return None
    to = str(draws.choice(list(holder)))
    holder[to] = deepcopy(holder[key])
    return to
