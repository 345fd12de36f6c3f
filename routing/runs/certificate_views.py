"""The certificate of a run as a page to read and to print."""

from django.http import Http404
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext as _

from annotation.common.access import ProjectRequest, needs
from annotation.templatetags.hypac import percent
from routing.core.losses import imported_paths
from routing.core.right import MEANING
from routing.core_language import translated
from routing.models import Run
from routing.runs.queries import run_report


@needs("runs.view", "GET")
def run_certificate_page(request: ProjectRequest, number: int) -> HttpResponseBase:
    run = get_object_or_404(
        Run.objects.select_related("project"), project=request.access.project, number=number
    )
    report = run_report(run)
    if report.certificate is None:
        raise Http404("not analysed yet")
    return render(
        request,
        "routing/runs/run_certificate.html",
        {
            "run": run,
            "report": report,
            "certificate": report.certificate,
            "limits": limits_of(run),
            "breaks": what_breaks_it(),
            "own_code": imported_paths(run.loss, run.loss_params),
        },
    )


def limits_of(run: Run) -> list[str]:
    """What nobody is promised by a certificate of this run."""
    target = {
        Run.Target.DATASET: _("It says nothing of items that were added after the run had been started."),
        Run.Target.POOL: _("It says nothing of items that were added after the run had been started."),
        Run.Target.POPULATION: _(
            "It holds for items from the same source alone, which the same models answer."
        ),
    }[Run.Target(run.target)]
    return [
        translated(MEANING),
        _("It may be wrong by bad luck of the draw, but at most with probability %(alpha)s (alpha).")
        % {"alpha": percent(run.alpha, 4)},
        _(
            "It speaks about all items together. Of one kind of label, or of a group of items, a larger "
            "share may differ from what people would say."
        ),
        target,
        _("The savings are an account of prices and counts. They are not certified."),
    ]


def what_breaks_it() -> list[str]:
    return [
        _("A label of the calibration set is changed after the analysis. The run is then marked invalid."),
        _(
            "Labels come from another model, version or prompt than the plan names. HyPAC refuses to route "
            "by such answers; labels that are changed after the delivery it cannot see."
        ),
        _("Whoever labelled the calibration set had seen what the models said. HyPAC hides it until then."),
        _(
            "Epsilon, alpha or the thresholds are chosen again once the result is known. Another look needs "
            "a run of its own, with its own share of alpha."
        ),
    ]
