"""Forged deliveries: an edit somewhere, and then every hash put right, as a careful forger would."""

import hashlib
import json
import random
import re
from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from typing import Any

from routing.core.certificate import document_hash
from routing.core.commitment import blank_hash, blank_line, fixed_chains, lines_document
from routing.core.documents import parse_row
from routing.labels.page import ADDED

Files = dict[str, bytes]
Node = Any
WITHOUT_MEANING = {
    "certificate.json: version": "3 and 2 say the same where nothing is certified",
    "certificate.json: plan.pilot_size": "the size of the pilot decides about forecasts and prices alone",
    "certificate.json: chains.policies.model_cost": "costs foretold decide which certified policy is taken,"
    " and what it saves",
    "certificate.json: chains.policies.people_cost": "as model_cost",
    "certificate.json: chains.policies.cost": "as model_cost",
    "certificate.json: chains.policies.thresholds": "a step that goes past no item and is not taken is "
    "the same; that it was fixed beforehand is on trust",
    "certificate.json: chains.policies.move": "as thresholds",
    "certificate.json: chains.policies[]": "a whole step that is not taken; as thresholds",
    "certificate.json: chains.name": "what a chain is called that is not taken",
    "certificate.json: slices.models_cost": "as model_cost",
    "certificate.json: slices.people_cost": "as model_cost",
    "certificate.json: slices.rho": "the rank of a slice, which no test reads",
    "certificate.json: slices.ends": "an end that moves past no item",
    "certificate.json: scores.chains.policies.thresholds": "as thresholds of `chains`",
    "certificate.json: scores.chains.policies[]": "as those of `chains`",
    "certificate.json: scores.chains.name": "what a chain is called that is not taken",
    "certificate.json: reference.expert_cost": "as model_cost",
    "certificate.json: plan.loss_params.measure": "what the program is called: the first commitment holds it",
    "certificate.json: provenance": "names, words, prices, fingerprints; not run and ledger",
    "final_audit.json: frame.hash": "of labels that are not published",
    "draw.jsonl: answers": "on trust, where no count changes: it still agrees, or still differs, or no "
    "policy that was tested delivers it",
    "draw.jsonl: losses": "of an answer that no policy that was tested delivers: what was measured is on "
    "trust",
    "draw.jsonl: own": "on trust, where no count changes: it goes past no threshold that was tested, or its "
    "answer is right",
    "draw.jsonl: person": "on trust, where no count changes",
    "draw.jsonl: called": "on trust, where no test needs the answer",
    "draw.jsonl: later": "that an answer came only after the second commitment: who noted its hash can tell",
    "committed.jsonl: content": "of what people saw, whose texts the verifier does not read",
    "committed.jsonl: answers": "of an item that was not asked about, where another source labelled it",
    "answered.jsonl: item_id": "of an item that was taken in later",
    "answered.jsonl: content": "of an item that was taken in later",
    "answered.jsonl: u": "of an item that was taken in later and goes past no threshold",
    "answered.jsonl: answers": "of an item that was not asked about, where another source labelled it",
    "answered.jsonl: []": "a line that decides no route",
    "pilot.jsonl: content": "as in committed.jsonl, of an item outside the pool",
    "pilot.jsonl: u": "of an item outside the pool",
    "pilot.jsonl: answers": "of an item outside the pool, or of a model that answered for the pilot after "
    "the draw",
    "labels.jsonl: label": "of an item without a label of the draw: that the answer is the model's, and the "
    "label the person's, is on trust",
    "labels.jsonl: audited": "of an item taken in later that people labelled: whether an audit asked them",
    "labels.jsonl: label_name": "what a choice is called",
    "labels.jsonl: annotator": "who it was",
    "labels.jsonl: settled_by": "how several people were made one",
    "labels.jsonl: run": "of a person's label",
    "labels.jsonl: expert_saw": "a reason in place of another, or a column that deliveries once lacked",
    "labels.jsonl: suggestion": "of a person's label that the draw does not have: what was shown with it",
    "labels.jsonl: source": "of an item without a label of the draw: a later model that gave the same answer",
    "labels.jsonl: external_id": "of an item that the certificate does not cover",
    "labels.jsonl: uncertainty": "of an item that was not drawn, where it goes past no threshold",
    "labels.jsonl: *": "the imported columns",
}
"""By field, without places in lists: why an edit there may be found by nobody, the hashes being put right. A
field stands for all that is in it, but for `WITH_MEANING`; one that ends in [] for an entry as a whole."""
LINES = ("draw.jsonl", "labels.jsonl", "committed.jsonl", "answered.jsonl", "pilot.jsonl")
DOCUMENTS = ("certificate.json", "final_audit.json", "manifest.json")


def canonical(document: Node) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def read(files: Files, name: str) -> Node:
    """A document, or the list of a file's lines."""
    if name in LINES:
        return [json.loads(line) for line in files[name].splitlines()]
    return json.loads(files[name])


def written(name: str, node: Node) -> bytes:
    if name in LINES and name != "labels.jsonl":
        return b"".join(canonical(row) for row in node)
    if name == "labels.jsonl":
        return "".join(
            json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in node
        ).encode()
    return canonical(node)


def put_right(files: Files, *, commitments: bool = True) -> Files:
    """The same files with the hash of the draw, the certificate's id and the manifest as they follow; and
    with commitments that say so, as if nobody had noted those that were shown, unless these were forged.
    """
    files = dict(files)
    before = re.search(rb"- Certificate: ([0-9a-f]{64})", files["README.md"])
    document = json.loads(files["certificate.json"])
    if isinstance(document, dict) and isinstance(document.get("draw"), dict):
        document["draw"]["sha256"] = hashlib.sha256(files["draw.jsonl"]).hexdigest()
        if commitments and "commitments" in document:
            with suppress(AttributeError, IndexError, KeyError, TypeError, ValueError):
                _commit(document, files)
    files["certificate.json"] = canonical(document)
    after = hashlib.sha256(files["certificate.json"]).hexdigest().encode()
    for name in files:
        if before and name not in ("certificate.json", "draw.jsonl"):
            files[name] = files[name].replace(before[1], after)
    if "manifest.json" in files:
        files["manifest.json"] = manifest(files)
    return files


def _commit(document: Node, files: Files) -> None:
    """Commitments, and the run's entry of the ledger, that say what the files say now."""
    first, second = document["commitments"]["before_draw"], document["commitments"]["before_labels"]
    population, provenance = document["plan"]["target"] == "population", document["provenance"]
    reference = dict(document.get("reference", {}))
    rechecked = reference.pop("rechecked", None)
    reference.pop("replaced", None)
    chains = fixed_chains(document, document["plan"]["rule"])
    lines = {name: files[name].splitlines() for name in LINES if name in files}
    pilot = lines_document(lines.get("pilot.jsonl", []))
    first |= {
        "project": provenance["project"],
        "run": provenance["run"],
        "plan": document["plan"],
        "entropy": document["draw"]["entropy"],
        "pool": document["pool"],
        "sources": provenance["sources"],
        "items": lines_document(lines["committed.jsonl"]),
        "pilot": None if population else pilot,
        "chains": None if population else chains,
        "reference": reference or None,
    }
    entries = document["ledger"]
    own = second["ledger"]["entries"] - 1
    entries[own] |= {
        "run": provenance["run"],
        "alpha": document["plan"]["alpha"],
        "target": document["plan"]["target"],
        "pool": document["pool"]["hash"],
        "commitment": document_hash(first),
    }
    previous = ""
    for entry in entries:
        entry["previous"] = previous
        del entry["sha256"]
        previous = entry["sha256"] = document_hash(entry)
    rows = [json.loads(line) for line in lines["draw.jsonl"]]
    second |= {
        "project": provenance["project"],
        "run": provenance["run"],
        "before_draw": document_hash(first),
        "draw": {
            "rows": len(rows),
            "asked": sum(row["asked"] for row in rows),
            "sha256": blank_hash(blank_line(parse_row(line.decode(), 0)) for line in lines["draw.jsonl"]),
        },
        "pilot": pilot if population else None,
        "chains": chains if population else None,
        "rechecked": rechecked,
        "ledger": {"entries": own + 1, "head": entries[own]["sha256"]},
    }


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
    committed = _of_commitments(node) if name == "certificate.json" else None
    changed = change(node)
    node = node if changed is None else changed
    same = name != "certificate.json" or _of_commitments(node) == committed
    return put_right(files | {name: written(name, node)}, commitments=same)


def _of_commitments(node: Node) -> Node:
    return deepcopy({name: node.get(name) for name in ("commitments", "ledger")})


def random_edit(files: Files, draws: random.Random) -> tuple[str, str, Files] | None:
    """A random value changed, deleted or duplicated: the field, what was done, and the files; None where
    nothing is another afterwards.
    """
    there = [name for name in (*DOCUMENTS, *LINES) if files.get(name)]
    name = draws.choices(there, weights=[5 if name == "certificate.json" else 2 for name in there])[0]
    node = read(files, name)
    path, holder, key = _somewhere(node, draws)
    before = written(name, node)
    what = draws.choice((change, delete, duplicate))
    if (to := what(holder, key, draws)) is not None:
        path = re.sub(r"[^.\[\]]+$", to, path)
    edited = files | {name: written(name, node)}
    # Who changes the manifest alone leaves it so.
    edited = (
        edited
        if name == "manifest.json"
        else put_right(edited, commitments=not path.startswith(("commitments", "ledger")))
    )
    if written(name, node) == before or edited == files:
        return None
    return f"{name}: {path}", what.__name__, edited


WITH_MEANING = (
    "certificate.json: provenance.run",
    "certificate.json: provenance.alpha_ledger",
    "certificate.json: provenance.alpha_total",
)
"""What lies in a field without meaning, and has one."""


def without_meaning(field: str, before: Files | None = None, after: Files | None = None) -> str:
    """By which entry of `WITHOUT_MEANING` an edit of a field need not be found; '' where it has to be. With
    the files ``before`` and ``after`` it only is where the rows that it changes leave it open.
    """
    found = _entry_of(field)
    if not found or before is None or after is None:
        return found
    name = found.partition(": ")[0]
    meant = {"labels.jsonl": _meant_label, "draw.jsonl": _meant_draw}.get(name)
    return (
        "" if meant and any(meant(found, *pair, before) for pair in _changed(name, before, after)) else found
    )


def _changed(name: str, before: Files, after: Files) -> list[tuple[Node, Node]]:
    """The rows that are others afterwards, where there are as many."""
    old, new = read(before, name), read(after, name)
    pairs = zip(old, new, strict=True) if len(old) == len(new) else ()
    return [(one, other) for one, other in pairs if one != other]


def _meant_label(found: str, old: Node, _new: Node, before: Files) -> bool:
    """Whether a row of a delivery is that of a drawn item, of which the draw says the same."""
    drawn = {row["item_id"]: row for row in read(before, "draw.jsonl")}.get(old["external_id"])
    if drawn is None:
        return False
    if found.endswith((": label", ": source")):
        return bool(drawn["asked"]) and drawn["label"] is not None
    return found.endswith((": uncertainty", ": external_id"))


def _meant_draw(_found: str, old: Node, new: Node, before: Files) -> bool:
    """Whether a row of the draw counts otherwise in a policy that was tested."""
    document = read(before, "certificate.json")
    plain = old["asked"] and old["label"] is not None and document["plan"]["loss"] == "zero_one"
    if not plain or any(type(new.get(name)) is not type(old.get(name)) for name in ("answers", "own")):
        return False
    lengths = [[len(row.get(name) or []) for name in ("answers", "own")] for row in (old, new)]
    keys = [key for key in new.get("own") or [] if key is not None]
    if lengths[0] != lengths[1] or not all(isinstance(key, list) and len(key) == 2 for key in keys):
        return False  # what cannot be read is no count
    if not all(type(u) in (int, float) and type(v) is int for u, v in keys):
        return False
    return _losses(old, document) != _losses(new, document)


def _losses(row: Node, document: Node) -> list[bool]:
    """Whether each policy that was tested delivers a wrong answer of an asked item, but for cascades and for
    chains of an expert.
    """
    called, found = row.get("called") or [True] * len(row["answers"]), []
    keys = [[row["u"], row["v"]], *(row.get("own") or [])]
    for chain in [*document["chains"], *document.get("scores", {}).get("chains", [])]:
        for policy in chain["policies"][: chain.get("reached")]:
            if "thresholds" not in policy or chain.get("shape") == "cascade":
                continue
            limits = policy["thresholds"]
            if chain.get("shape") == "own":
                model, limit = chain["models"][0] - 1, limits[0]
                key = keys[model] or [1.0, 2**53 - 1]
                by = [model] if limit is not None and key <= limit else []
            else:
                start = sum(limit is None or keys[0] > limit for limit in limits)
                by = list(range(start, len(limits)))
            given = [row["answers"][k] for k in by if called[k] and row["answers"][k] is not None]
            found.append(bool(given) and given[0] != row["label"])
    return found


def _entry_of(field: str) -> str:
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
