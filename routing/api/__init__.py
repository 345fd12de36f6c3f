"""The part of /api/v1/ that is about models, runs and what they deliver.

`urlpatterns` is included by hypac_site.urls.
"""

from routing.api import (
    budget,
    deliveries,
    delivery_exports,
    item_changes,
    overview,
    plans,
    predictions,
    prices,
    prompts,
    runs,
    sources,
    table,
)

urlpatterns = [
    *overview.urlpatterns,
    *sources.urlpatterns,
    *prompts.urlpatterns,
    *prices.urlpatterns,
    *plans.urlpatterns,
    *budget.urlpatterns,
    *runs.urlpatterns,
    *deliveries.urlpatterns,
    *delivery_exports.urlpatterns,
    *predictions.urlpatterns,
    *table.urlpatterns,
    *item_changes.urlpatterns,
]
