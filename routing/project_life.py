"""What routing has to say and to copy where annotation deals with whole projects."""

from django.urls import reverse
from django.utils.translation import gettext as _

from annotation.common.permissions import Access
from annotation.models import Project, User
from routing.models import Certificate, Delivery, ModelPrice, Prediction, PromptVersion, Run, Source
from routing.overview.facts import read_facts
from routing.overview.next_step import next_step_of


def copy_sources(project: Project, copy: Project, actor: User) -> None:
    """Price list, sources and the prompt in force of each. Keys stay behind: whoever duplicates a project
    need not be who may spend on them.
    """
    prices = {}
    for price in project.model_prices.all():
        prices[price.pk] = ModelPrice.objects.create(
            project=copy, name=price.name, cost_function=price.cost_function, prices=price.prices
        )
    for source in project.sources.order_by("position"):
        twin = Source.objects.create(
            project=copy,
            position=source.position,
            name=source.name,
            backend=source.backend,
            params=source.params,
            cost_per_label=source.cost_per_label,
            cost_function=source.cost_function,
            prices=source.prices,
            price=prices[source.price_id] if source.price_id else None,
            served=source.served,
        )
        if prompt := source.prompt_versions.order_by("-number").first():
            PromptVersion.objects.create(
                source=twin,
                number=1,
                system=prompt.system,
                template=prompt.template,
                examples=prompt.examples,
                created_by=actor,
            )


def contents(project: Project) -> list[tuple[str, int]]:
    return [
        (_("Sources with their prompts"), project.sources.count()),
        (_("Predictions"), Prediction.objects.filter(source__project=project).count()),
        (_("Runs"), Run.objects.filter(project=project).count()),
        (_("Certificates"), Certificate.objects.filter(run__project=project).count()),
        (_("Deliveries"), Delivery.objects.filter(run__project=project).count()),
    ]


def next_step(access: Access) -> tuple[str, str] | None:
    """The one thing to do that the project's main page shows, and that page."""
    step = next_step_of(read_facts(access))
    return step.text, reverse("overview", args=[access.project.slug])
