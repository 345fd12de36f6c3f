"""Sources in a copy of their project."""

from annotation.models import Project, User
from routing.models import MendVersion, ModelPrice, PromptVersion, Source


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
        if mends := source.mend_versions.order_by("-number").first():
            MendVersion.objects.create(
                source=twin,
                number=1,
                blanks=mends.blanks,
                capitals=mends.capitals,
                labels=mends.labels,
                created_by=actor,
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
