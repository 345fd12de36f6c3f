"""The part of /api/v1/ that is about models, runs and what they deliver.

`urlpatterns` is included by hypac_site.urls.
"""

from routing.delivery import api as deliveries, exports_api as delivery_exports
from routing.items import api as table, changes_api as item_changes
from routing.overview import api as overview
from routing.runs import api as runs, budget_api as budget, plan_api as plans
from routing.sources import (
    api as sources,
    predictions_api as predictions,
    prices_api as prices,
    prompts_api as prompts,
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
