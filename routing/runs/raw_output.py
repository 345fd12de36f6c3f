"""What models wrote word by word, once it was kept as long as the server keeps it. Labels and scores that
were read out of it stay.
"""

import time
from datetime import datetime

from django.core.cache import cache

from annotation.models import Job
from routing.common.states import CANCELLABLE
from routing.models import REMOVED, MeasuredSource, Measurement, Prediction, Run, RunSource, SourceTry
from routing.sources.sent_words import forget_words

PLACE = "retention:raw-output:place"
PLACE_SECONDS = 24 * 3600
"""After so long it is begun again from the first answer: a run that needed some may have ended meanwhile."""


def forget_raw_output(*, before: datetime, most: int) -> bool:
    """Go on behind the last answer that was looked at, `most` of them: rows are by age as by their keys, and
    no index is by either of what is asked here.
    """
    tries = list(SourceTry.objects.filter(created_at__lt=before).values_list("pk", flat=True)[:most])
    SourceTry.objects.filter(pk__in=tries).delete()
    words = forget_words(Job.objects.filter(created_at__lt=before), most=most)
    now = time.time()
    begun, place = cache.get(PLACE) or (now, 0)
    if now - begun > PLACE_SECONDS:
        begun, place = now, 0
    rows = Prediction.objects.filter(pk__gt=place).order_by("pk")
    found = list(rows.values_list("pk", "created_at", "source", "fingerprint")[:most])
    old = [row for row in found if row[1] < before]
    if old:
        needed = _needed()
        ids = [pk for pk, _when, source, fingerprint in old if (source, fingerprint) not in needed]
        Prediction.objects.filter(pk__in=ids).exclude(raw=REMOVED).exclude(raw={}).update(raw=REMOVED)
        cache.set(PLACE, (begun, old[-1][0]), PLACE_SECONDS)
    return most in (len(old), len(tries), words)


def _needed() -> set[tuple[int, str]]:
    """Sources, as they were asked, whose answers a run under way or the next one may make scores of."""
    used = Run.objects.exclude(state=Run.State.CANCELLED)
    waiting = Measurement.objects.filter(discarded_at__isnull=True).exclude(runs__in=used)
    needed = set(
        RunSource.objects.filter(run__state__in=CANCELLABLE).values_list("source", "fingerprint").distinct()
    )
    measured = MeasuredSource.objects.filter(measurement__in=waiting)
    return needed | set(measured.values_list("source", "fingerprint").distinct())
