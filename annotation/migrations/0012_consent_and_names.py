import logging
import unicodedata

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

log = logging.getLogger(__name__)
NAMED = 20

# What annotation.usernames said of names when this was written: as it stays here, whatever it says later.
# Letters, and the Latin ones that they are read for.
_READ_AS = (
    ("АВЕЅІЈКМНОРСТУХҮӀԚԜѴҺ", "ABESIJKMHOPCTYXYIQWVh"),
    ("авекмнорстухѕіјһԁԛԝѵӏүгп", "abekmhopctyxsijhdqwvlyrn"),
    ("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "ABEZHIKMNOPTYX"),
    ("αβγεηικνορστυχω", "abyenikvopotuxw"),
    ("ՕՍՏԼօոսհցզյք", "OUSLonuhgqjp"),
    ("ɑɡıȷɩɪʟʀʙɢʜɴʏᴀᴄᴅᴇᴊᴋᴍᴏᴘᴛᴜᴠᴡᴢꜱǀ", "agijiilrbghnyacdejkmoptuvwzsl"),
    ("I10", "llo"),
)
_LATIN = {ord(one): other for these, those in _READ_AS for one, other in zip(these, those, strict=True)}
_ACCENTS = range(0x300, 0x370)


def key_of(name: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def look_of(name: str) -> str:
    apart = unicodedata.normalize("NFKD", name)
    bare = "".join(sign for sign in apart if ord(sign) not in _ACCENTS)
    latin = bare.translate(_LATIN).translate(_LATIN)  # once more: of Cyrillic and Greek capitals an I is left
    return latin.casefold().replace("rn", "m").replace("vv", "w")


def tell_apart(apps, schema_editor):
    """Whoever came first has the name; who may log in goes before who may not. The others keep their
    accounts and names, and nobody else gets one like it.
    """
    User = apps.get_model("annotation", "User")
    keys, looks, alike = set(), set(), []
    users = User.objects.order_by("-is_active", "pk").only("pk", "username")
    for user in users.iterator(chunk_size=2000):
        if " " in user.username:
            continue
        key, look = key_of(user.username), look_of(user.username)
        if key in keys or look in looks:
            alike.append(user.username)
        changed = {
            "username_key": None if key in keys else key,
            "username_look": None if look in looks else look,
        }
        User.objects.filter(pk=user.pk).update(**changed)
        keys.add(key)
        looks.add(look)
    if alike:
        log.warning(
            "%d accounts have names that look like those of others, the first: %s. They can log in as before; "
            "docs/people.md says what to do.",
            len(alike),
            ", ".join(alike[:NAMED]),
        )


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0011_project_deleting_at"),
    ]

    operations = [
        migrations.AlterModelManagers(name="user", managers=[]),
        migrations.AddField(
            model_name="invitation",
            name="declined_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="invitation",
            name="max_labels",
            field=models.PositiveIntegerField(blank=True, help_text="Limits of the membership.", null=True),
        ),
        migrations.AddField(
            model_name="invitation",
            name="max_per_day",
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="invitation",
            name="user",
            field=models.ForeignKey(
                blank=True,
                help_text="To whom it is addressed; empty: whoever has the link.",
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="invitations",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="user",
            name="belonged_elsewhere",
            field=models.BooleanField(
                db_default=False,
                default=False,
                editable=False,
                help_text="Whether it ever was a member of another project than that.",
            ),
        ),
        migrations.AddField(
            model_name="user",
            name="made_in",
            field=models.BigIntegerField(
                editable=False, help_text="Id of the project whose owner made the account.", null=True
            ),
        ),
        migrations.AddField(
            model_name="user",
            name="password_chosen_at",
            field=models.DateTimeField(
                default=django.utils.timezone.now,
                editable=False,
                help_text="When its holder last chose the password; null: whoever made the account still knows it.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="user",
            name="reset_link_at",
            field=models.DateTimeField(
                editable=False, help_text="When a link for setting the password was last made.", null=True
            ),
        ),
        migrations.AddField(
            model_name="user",
            name="reset_link_by",
            field=models.ForeignKey(
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="user",
            name="username_key",
            field=models.CharField(editable=False, max_length=600, null=True, unique=True),
        ),
        migrations.AddField(
            model_name="user",
            name="username_look",
            field=models.CharField(editable=False, max_length=600, null=True, unique=True),
        ),
        migrations.AlterField(
            model_name="invitation",
            name="token_hash",
            field=models.CharField(
                help_text="SHA-256 of the token in the link.", max_length=64, null=True, unique=True
            ),
        ),
        migrations.AddConstraint(
            model_name="invitation",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("token_hash__isnull", False), ("user__isnull", True)),
                    models.Q(("max_uses", 1), ("token_hash__isnull", True), ("user__isnull", False)),
                    _connector="OR",
                ),
                name="invitation_link_or_person",
            ),
        ),
        migrations.AddConstraint(
            model_name="invitation",
            constraint=models.UniqueConstraint(
                condition=models.Q(
                    ("declined_at__isnull", True),
                    ("revoked_at__isnull", True),
                    ("user__isnull", False),
                    ("uses", 0),
                ),
                fields=("project", "user"),
                name="invitation_pending_once",
            ),
        ),
        migrations.RunPython(tell_apart, migrations.RunPython.noop),
    ]
