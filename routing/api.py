"""The part of /api/v1/ that is about models, runs and what they deliver.

`urlpatterns` is included by hypac_site.urls.
"""

from routing.by_people import api as by_people
from routing.delivery import api as deliveries
from routing.elsewhere import api as elsewhere, losses_api as losses
from routing.held_out import api as held_out
from routing.items import api as items, saved_views_api as saved_views
from routing.label_set import api as label_set
from routing.overview import api as overview
from routing.progress import api as progress
from routing.rounds import api as rounds
from routing.runs import (
    api as runs,
    commitment_api as commitments,
    expert_api as experts,
    plan_api as plans,
    start_api as starts,
)
from routing.sources import (
    api as sources,
    health_api as health,
    predictions_api as predictions,
    prompts_api as prompts,
)
from routing.workshop import api as workshop

urlpatterns = [
    *overview.urlpatterns,
    *progress.urlpatterns,
    *sources.urlpatterns,
    *prompts.urlpatterns,
    *health.urlpatterns,
    *plans.urlpatterns,
    *starts.urlpatterns,
    *runs.urlpatterns,
    *by_people.urlpatterns,
    *experts.urlpatterns,
    *commitments.urlpatterns,
    *deliveries.urlpatterns,
    *predictions.urlpatterns,
    *items.urlpatterns,
    *saved_views.urlpatterns,
    *label_set.urlpatterns,
    *elsewhere.urlpatterns,
    *losses.urlpatterns,
    *held_out.urlpatterns,
    *rounds.urlpatterns,
    *workshop.urlpatterns,
]
