"""The Celery application. Messages are only nudges: the Job rows say what there is to do."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hypac_site.settings")

app = Celery("hypac")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
