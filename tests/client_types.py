"""The types of what the Python client gives, made from the API's schema: `python -m tests.client_types`."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.openapi import write

FILE = Path(__file__).resolve().parent.parent / "clients/python/hypac_client/models.py"
HEAD = '''"""What the API answers with, as types. Made from its schema by `python -m tests.client_types`.

Answers are the dictionaries that came: nothing is checked or left out, and a field that a newer server adds
is in them. What ends in `Data` is the `data` of the class of that name. A `NotRequired` field is not in every
answer: a list gives less than the thing by itself. Words such as a state are `str`, as new ones may come.
"""

from typing import Any, NotRequired, TypedDict
'''
# What users of the client meet, and the schema's names of the answers that give it, the fullest first. What
# another one holds stands before it; objects that are not named here are plain dictionaries.
RECORDS = {
    "Token": ["TokenBody"],
    "Me": ["MeBody"],
    "InvitationData": ["OwnInvitationBody"],
    "SentInvitation": ["InvitationBody"],
    "Choice": ["ChoiceBody"],
    "ProjectData": ["ProjectBody", "ProjectSummary"],
    "StoredFile": ["StoredFileBody"],
    "Problem": ["JobProblemBody"],
    "Preview": ["PreviewBody"],
    "JobData": ["JobDetails", "JobBody"],
    "Item": ["ListedItem"],
    "Label": ["ListedLabel"],
    "ErasedItems": ["ErasedBody"],
    "Prediction": ["PredictionBody"],
    "TaskItem": ["ItemBody"],
    "OwnLabel": ["LabelBody"],
    "ModelSuggestion": ["SuggestionBody"],
    "TaskData": ["TaskBody"],
    "Mends": ["MendsBody"],
    "Usability": ["UsabilityBody"],
    "SourceData": ["SourceBody", "SavedSource", "SourceRow"],
    "Health": ["HealthBody"],
    "Outlook": ["OutlookBody"],
    "PeopleOutlook": ["PeopleOutlookBody"],
    "Certificate": ["CertificateBody"],
    "Progress": ["Progress"],
    "LaterItems": ["LaterItemsBody"],
    "RunData": ["RunDetails", "RunBody"],
    "RosterEntry": ["RosterEntryBody"],
    "FinalAudit": ["FinalAuditBody"],
    "Taken": ["TakenBody"],
    "WaitingWork": ["WaitingWorkBody"],
    "LossesAsked": ["LossesAskedBody"],
    "DeliveryFile": ["FileBody"],
    "DeliveryData": ["DeliveryBody"],
    "WebhookData": ["WebhookWithSecret", "WebhookBody"],
    "WebhookDelivery": ["WebhookDeliveryBody"],
}
NAMES = {body: name for name, bodies in RECORDS.items() for body in bodies}
SIMPLE = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}

Schema = Mapping[str, Any]


def module(schema: Schema) -> str:
    """The whole of the file."""
    known: Schema = schema["components"]["schemas"]
    return "\n\n".join([HEAD, *("\n".join(_lines(name, known)) + "\n" for name in RECORDS)])


def _lines(name: str, known: Schema) -> Iterator[str]:
    """One class. A field that some answer may lack is not required, and must have one type in all of them."""
    bodies = [known[body] for body in RECORDS[name]]
    always = set.intersection(*(set(body.get("required", ())) for body in bodies))
    kinds: dict[str, str] = {}
    for body in bodies:
        for field, described in body["properties"].items():
            kind = _kind(described, known)
            if kinds.setdefault(field, kind) != kind:
                raise ValueError(f"{name}.{field} is {kinds[field]} in one answer and {kind} in another")
    yield f"class {name}(TypedDict):"
    for field, kind in kinds.items():
        yield f"    {field}: {kind if field in always else f'NotRequired[{kind}]'}"


def _kind(described: Schema, known: Schema) -> str:
    kind = _kind_of_value(described, known)
    return f"{kind} | None" if described.get("nullable") and kind != "Any" else kind


def _kind_of_value(described: Schema, known: Schema) -> str:
    if "$ref" in described:
        body = described["$ref"].rpartition("/")[2]
        return NAMES.get(body) or _kind(known[body], known)
    if len(described.get("allOf", ())) == 1:
        return _kind(described["allOf"][0], known)
    match described.get("type"):
        case "array":
            return f"list[{_kind(described['items'], known)}]"
        case "object":
            inner = described.get("additionalProperties")
            return f"dict[str, {_kind(inner, known) if isinstance(inner, Mapping) else 'Any'}]"
        case kind:
            return SIMPLE.get(str(kind), "Any")


if __name__ == "__main__":
    write(FILE, module)
