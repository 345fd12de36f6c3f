"""`manage.py rotate_secrets`: stored keys under the first of HYPAC_ENCRYPTION_KEYS."""

from django.core.management.base import BaseCommand, CommandError

from routing.sources.stored_keys import rotate_stored_keys


class Command(BaseCommand):
    help = "Encrypts all stored keys and secrets anew with the first of HYPAC_ENCRYPTION_KEYS."

    def handle(self, *args: object, **options: object) -> None:
        done = rotate_stored_keys()
        self.stdout.write(f"{done.rotated} stored keys are encrypted anew.")
        if done.lost:
            raise CommandError(
                f"No key of this server opens what is stored for: {', '.join(done.lost)}. Add the old key at "
                "the end of HYPAC_ENCRYPTION_KEYS and run this again, or enter these keys anew."
            )
