"""What the API answers with, as types. Made from its schema by `python -m tests.client_types`.

Answers are the dictionaries that came: nothing is checked or left out, and a field that a newer server adds
is in them. What ends in `Data` is the `data` of the class of that name. A `NotRequired` field is not in every
answer: a list gives less than the thing by itself. Words such as a state are `str`, as new ones may come.
"""

from typing import Any, NotRequired, TypedDict


class Token(TypedDict):
    id: int
    name: str
    begins_with: str
    role: str | None
    project: str | None
    created_at: str
    expires_at: str
    last_used_at: str | None


class Me(TypedDict):
    username: str
    makes_projects: bool
    token: Token | None


class InvitationData(TypedDict):
    id: int
    project: str
    role: str
    invited_by: str
    created_at: str
    expires_at: str


class SentInvitation(TypedDict):
    id: int
    username: str | None
    role: str
    state: str
    note: str
    uses: int
    max_uses: int
    expires_at: str
    created_by: str
    created_at: str


class Choice(TypedDict):
    name: str
    key: NotRequired[str]
    hotkey: NotRequired[str]
    color: NotRequired[str]


class ProjectData(TypedDict):
    slug: str
    name: str
    task_type: str
    created_at: str
    archived_at: str | None
    role: str
    question: NotRequired[str]
    guidelines: NotRequired[str]
    currency: NotRequired[str]
    human_cost: NotRequired[str | None]
    lease_seconds: NotRequired[int]
    text_format: NotRequired[str]
    overlap: NotRequired[int]
    overlap_share: NotRequired[str]
    consensus: NotRequired[str]
    loss: NotRequired[str]
    loss_params: NotRequired[dict[str, Any]]
    choices: NotRequired[list[Choice]]
    task_type_lacks: NotRequired[str]


class StoredFile(TypedDict):
    id: int
    name: str
    size: int
    sha256: str
    created_at: str


class Problem(TypedDict):
    where: str
    line: int | None
    column: str
    message: str


class Preview(TypedDict):
    format: str
    format_title: str
    encoding: str
    sheets: list[str]
    holds_images: bool
    columns: list[dict[str, Any]]
    rows: list[dict[str, str | None]]
    thumbnails: list[str]
    problems: list[Problem]
    suggestion: dict[str, Any]
    models: list[dict[str, Any]]


class JobData(TypedDict):
    id: int
    kind: str
    state: str
    pause_asked: bool
    stage: str
    done: int
    total: int | None
    error: str
    result: Any
    problem_count: int
    created_at: str
    started_at: str | None
    finished_at: str | None
    problems: NotRequired[list[Problem]]


class Item(TypedDict):
    id: int
    text: str
    erased: bool
    image: str | None
    external_id: str
    data: NotRequired[dict[str, Any]]


class Label(TypedDict):
    id: int
    item: int
    value: Any
    version: int
    comment: str
    created_at: str
    external_id: str | None
    annotator: str
    lead_time_ms: int | None
    supersedes: int | None


class ErasedItems(TypedDict):
    items: int
    already: int
    deliveries: int
    sent: int


class Prediction(TypedDict):
    id: int
    source: int
    fingerprint: str
    item: int
    external_id: str
    value: Any
    reason: str
    raw: dict[str, Any]
    scores: list[dict[str, Any]]
    tokens_in: int | None
    tokens_out: int | None
    finish_reason: str
    latency_ms: float | None
    served_model: str
    served_revision: str
    cost: str
    cost_note: str
    created_at: str


class TaskItem(TypedDict):
    id: int
    text: str
    erased: bool
    image: str | None


class OwnLabel(TypedDict):
    id: int
    item: int
    value: Any
    version: int
    comment: str
    created_at: str


class ModelSuggestion(TypedDict):
    value: Any
    source: str


class TaskData(TypedDict):
    work_item: int
    item: TaskItem
    name: str
    external_id: str | None
    token: str
    expires_at: str | None
    draft_value: Any
    correcting: OwnLabel | None
    suggestion: ModelSuggestion | None


class Mends(TypedDict):
    number: int
    blanks: bool
    capitals: bool
    labels: dict[str, str]


class Usability(TypedDict):
    source: str
    position: int
    basis: str
    looked_at: int
    items: int
    usable: int
    reasons: list[dict[str, Any]]
    score_values: int | None
    sentence: str
    asks: bool


class SourceData(TypedDict):
    id: int
    position: int
    name: str
    backend: str
    cost_per_label: str
    cost_function: str
    prices: dict[str, str]
    params: NotRequired[dict[str, Any]]
    served: NotRequired[dict[str, Any]]
    price: NotRequired[int | None]
    has_key: NotRequired[bool]
    prompt: NotRequired[dict[str, Any] | None]
    usability: NotRequired[Usability | None]
    scores: NotRequired[list[dict[str, Any]]]
    warnings: NotRequired[list[str]]


class Health(TypedDict):
    usability: Usability
    unusable: int
    without_answer: int
    reasons: list[dict[str, Any]]
    shown: bool
    confidence: list[dict[str, Any]]
    classes: list[dict[str, Any]]
    other_classes: int
    agreement: list[dict[str, Any]]
    spellings: list[dict[str, Any]]
    mends: Mends
    measured: dict[str, Any] | None
    computing: bool


class Outlook(TypedDict):
    sentence: str
    what_is_right: str
    certifiable: bool
    bound: str
    pool_size: int
    pilot_size: int
    expected_labels: float
    people_per_item: float
    expected_tested_labels: int
    smallest_n: int | None
    allowed_errors: int | None
    allowed_mean_loss: float | None
    exact: bool
    currency: str
    calibration_cost: str
    model_cost: str
    model_cost_at_least: str
    at_least: str
    at_most: str
    people_only: str
    people_at_least: int
    nearly_all_to_people: bool
    usability: list[Usability]
    asks_to_accept_unusable: bool
    asks_to_accept_dearer: bool
    warnings: list[str]
    missing: list[str]
    final_audit: str
    measured: dict[str, Any]
    promises: list[dict[str, Any]]
    references: dict[str, Any] | None
    references_missing: str


class PeopleOutlook(TypedDict):
    matching: int
    labelled: int
    items: int
    answers: float
    cost: str
    seconds_per_label: int
    seconds: float


class Certificate(TypedDict):
    id: str
    certified: bool
    sentence: str
    what_is_right: str
    thresholds: list[dict[str, Any]]
    own_scores: bool
    allowed_errors: int | None
    observed_errors: float | None
    asked: int | None
    unanswered: int | None


class Progress(TypedDict):
    open: int
    leased: int
    done: int
    unlabelable: int
    total: int
    items: int
    settled: int
    disagreeing: int


class LaterItems(TypedDict):
    waiting: int
    objection: str
    taken_in: list[dict[str, Any]]
    audit: dict[str, Any] | None


class RunData(TypedDict):
    number: int
    state: str
    by_people: bool
    chosen: dict[str, Any] | None
    epsilon: float | None
    alpha: float | None
    target: str
    m: int
    p: float
    p_column: str
    p_min: float | None
    bound: str
    rule: str
    split_share: float
    loss: str
    loss_params: dict[str, Any]
    score: str
    score_params: dict[str, Any]
    human_cost: str
    overlap: int
    overlap_share: float
    consensus: str
    reference: str
    expert_name: str
    expert_cost: str | None
    recheck_share: float | None
    audit_share: float | None
    accepted_error: float | None
    final_sample: int | None
    final_models_error: float | None
    final_models_alpha: float | None
    final_people_alpha: float | None
    later_audit_share: float | None
    draw_from: str
    suggestions: bool
    pool_size: int
    later_size: int
    whole_size: int | None
    pool_hash: str
    created_at: str
    analysed_at: str | None
    routed_at: str | None
    completed_at: str | None
    sources: NotRequired[list[dict[str, Any]]]
    calibration: NotRequired[Progress | None]
    labelling: NotRequired[Progress | None]
    expert: NotRequired[Progress | None]
    paid: NotRequired[str]
    models: NotRequired[dict[str, Any]]
    alpha_total: NotRequired[float]
    commitments: NotRequired[list[dict[str, Any]]]
    draw_waits: NotRequired[bool]
    invalid_reasons: NotRequired[list[str]]
    suggested: NotRequired[dict[str, Any] | None]
    people_agreement: NotRequired[dict[str, Any]]
    certificate: NotRequired[Certificate]
    labels_by_source: NotRequired[list[dict[str, Any]]]
    blanks: NotRequired[int]
    routing_saving: NotRequired[str | None]
    net_saving: NotRequired[str | None]
    savings_final: NotRequired[bool]
    two_people: NotRequired[dict[str, Any] | None]
    figures: NotRequired[dict[str, Any]]
    audit: NotRequired[dict[str, Any] | None]
    later_items: NotRequired[LaterItems | None]
    people: NotRequired[dict[str, Any] | None]
    people_measured: NotRequired[dict[str, Any] | None]
    other_references: NotRequired[list[dict[str, Any]]]


class RosterEntry(TypedDict):
    user: str
    name: str
    role: str
    share: str
    left_at: str | None
    open: int
    done: int
    last_label_at: str | None
    may_label: bool


class FinalAudit(TypedDict):
    planned: int
    drawn_at: str | None
    size: int | None
    sampled: int | None
    open: int
    objection: str
    id: str | None
    certified: bool | None
    sentence: str | None
    invalid_reasons: list[str]


class Taken(TypedDict):
    stored: int
    known: int
    refused: list[dict[str, Any]]


class WaitingWork(TypedDict):
    part: str
    waiting: int
    blind: bool
    conditions: list[str]
    note: str


class LossesAsked(TypedDict):
    measure: str
    binary: bool
    models: list[str]
    items: int
    measured: int
    missing: list[str]
    conditions: list[str]


class DeliveryFile(TypedDict):
    name: str
    size: int
    sha256: str
    media_type: str
    url: str


class DeliveryData(TypedDict):
    id: int
    run: int
    number: int
    rows: int
    blanks: int
    items: int
    since: int | None
    filters: dict[str, str]
    part: str
    partial: bool | None
    certified: bool
    sentence: str
    certificate: str
    two_people: dict[str, Any] | None
    broken_by: list[str]
    created_at: str
    files: list[DeliveryFile]
    zip: str


class WebhookData(TypedDict):
    id: int
    url: str
    description: str
    events: list[str]
    shape: str
    active: bool
    off_reason: str
    failing_since: str | None
    created_at: str
    secret: NotRequired[str]


class WebhookDelivery(TypedDict):
    id: int
    message_id: str
    event: str
    state: str
    attempts: int
    next_attempt_at: str | None
    status: int | None
    error: str
    duration_ms: int | None
    created_at: str
    finished_at: str | None
