#!/usr/bin/env python
"""Command line of the HyPAC site."""

import gc
import os
import sys

# What is imported stays. Walking it for garbage again and again is a sixth of the start of a command.
# What runs on keeps some megabytes of garbage longer.
OBJECTS_BETWEEN_COLLECTIONS = 50_000


def main() -> None:
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hypac_site.settings")
    try:
        import django
        from django.core.exceptions import ImproperlyConfigured
        from django.core.management import ManagementUtility, execute_from_command_line
        from django.db import DatabaseError, DataError, IntegrityError

        from hypac_site.demo_folder import use_demo_folder
    except ImportError as error:
        sys.exit(f"Django cannot be imported ({error}). Run `make setup`, then use .venv/bin/python.")
    try:
        if sys.argv[1:2] == ["demo"] and "--llm" in sys.argv:
            use_demo_folder("demo-llm", model_servers=2)
        elif sys.argv[1:2] == ["demo"]:
            use_demo_folder()
        if sys.argv[1:2] == ["version"]:  # Django would tell its own
            django.setup()
            ManagementUtility(sys.argv).fetch_command("version").run_from_argv(sys.argv)
        else:
            execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:  # a setting: its words say all
        sys.exit(str(error))
    except (DataError, IntegrityError):  # of what a command writes, whatever the tables are
        raise
    except DatabaseError as error:
        # Commands that make the tables find such a database: their own error says more.
        makes_tables = sys.argv[1:2] in (["migrate"], ["restore"], ["move"])
        if makes_tables or "--traceback" in sys.argv or not (words := what_the_database_lacks()):
            raise
        sys.exit(f"{str(error).strip()}\n{words}")


def what_the_database_lacks() -> str:
    """Why no command can work with it, such as missing tables; "" where nothing is wrong."""
    from django.conf import settings

    from hypac_site.version import of_database

    found = list(of_database())
    if found and settings.EMBEDDED:
        found.append(f"It is in {settings.VAR_DIR}; HYPAC_VAR names the folder of another one.")
    return "\n".join(found)


if __name__ == "__main__":
    main()
