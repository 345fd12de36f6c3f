"""ASGI entry point."""

import os

from django.core.asgi import get_asgi_application

from hypac_site.statement_limit import limit_statements

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hypac_site.settings")
application = get_asgi_application()
limit_statements()
