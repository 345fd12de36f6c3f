"""What is odd about recorded answers, said before a draw and money are spent on them."""

from collections.abc import Sequence

from annotation.models import Item, Project
from routing.backends import open_backend
from routing.models import Source
from routing.services.score_fields import keys_by_name

SAMPLE = 50


def recorded_warnings(project: Project, sources: Sequence[Source]) -> tuple[str, ...]:
    """Sentences about sources whose columns cannot serve. No answer is told, so labels stay blind."""
    first, keys = sources[0], keys_by_name(project)
    sample = list(Item.objects.filter(project=project).order_by("position")[:SAMPLE])
    warnings = []
    for source in sources:
        if source.backend != "recorded":
            continue
        backend = open_backend(source.backend, source.params)
        answers = backend.predict(sample)
        if sample and not any(answer.value in keys for answer in answers):
            warnings.append(
                f"{source.name}: none of the first {len(sample)} items has one of the project's labels in "
                f"the column {source.params['label_column']!r}. What has none goes on to the next source."
            )
        if source == first and not backend.fields:
            warnings.append(
                f"{source.name} comes first and names no column of confidences, uncertainties or "
                "probabilities, by which its answers are routed: none of them can be used, and every item "
                "goes on to the next source."
            )
    return tuple(warnings)
