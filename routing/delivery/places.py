"""What is the same wherever a delivery is put."""

from django.utils.translation import gettext_noop

from annotation import failures

MANIFEST = "manifest.json"

OTHER_OBJECT = failures.register(
    "other_object_there",
    gettext_noop("There is another object at “%(key)s”. Choose another folder, or have it replaced."),
)
NOT_AS_SENT = failures.register("not_as_sent", gettext_noop("“%(key)s” is not in the bucket as it was sent."))
