"""The part of /api/v1/ that is about models, runs and what they deliver.

`urlpatterns` is included by hypac_site.urls.
"""

from routing.delivery import api as deliveries
from routing.delivery import exports_api as delivery_exports
from routing.items import api as table
from routing.items import changes_api as item_changes
from routing.overview import api as overview
from routing.runs import api as runs
from routing.runs import budget_api as budget
from routing.runs import plan_api as plans
from routing.sources import (
    api as sources,
)
from routing.sources import (
    predictions_api as predictions,
)
from routing.sources import (
    prices_api as prices,
)
from routing.sources import (
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
