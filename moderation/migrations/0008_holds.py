"""Holds, and the leads who may lift them."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.apps.registry import Apps
from django.conf import settings
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

import moderation.domain.states
import moderation.models.ids

READERS = ["chatstore.view_channel", "chatstore.view_guild", "moderation.view_purge"]
MODERATORS = [*READERS, "chatstore.view_chatuser", "moderation.add_purge"]
PLACING = ["moderation.view_hold", "moderation.add_hold"]
LIFTING = [*PLACING, "moderation.change_hold"]
GROUPS = {
    "moderators": PLACING,
    "leads": [*MODERATORS, *LIFTING, "moderation.view_auditentry"],
    "admins": LIFTING,
}


def give_rights(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Permissions are made here by hand: Django makes its own only after all migrations."""
    content_types = apps.get_model("contenttypes", "ContentType")
    permissions = apps.get_model("auth", "Permission")
    for name, rights in GROUPS.items():
        group, _ = apps.get_model("auth", "Group").objects.get_or_create(name=name)
        for right in rights:
            app, codename = right.split(".")
            act, model = codename.split("_")
            kind, _ = content_types.objects.get_or_create(app_label=app, model=model)
            permission, _ = permissions.objects.get_or_create(
                content_type=kind, codename=codename, defaults={"name": f"Can {act} {model}"}
            )
            group.permissions.add(permission)


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("moderation", "0007_undo_expired"),
    ]
    operations = [
        migrations.AddField(
            model_name="purge",
            name="held_back",
            field=models.BigIntegerField(db_default=0, default=0),
        ),
        migrations.AlterField(
            model_name="step",
            name="state",
            field=models.CharField(
                choices=[
                    ("pending", "pending"),
                    ("quarantining", "quarantining"),
                    ("quarantined", "quarantined"),
                    ("stamped", "stamped"),
                    ("rewritten", "rewritten"),
                    ("deleted", "deleted"),
                    ("verified", "verified"),
                    ("closed", "closed"),
                    ("counted", "counted"),
                    ("held", "held"),
                    ("cancelled", "cancelled"),
                    ("failed", "failed"),
                ],
                default=moderation.domain.states.StepState["PENDING"],
                max_length=12,
            ),
        ),
        migrations.CreateModel(
            name="Hold",
            fields=[
                (
                    "id",
                    models.BigIntegerField(
                        db_default=moderation.models.ids.NextId(), primary_key=True, serialize=False
                    ),
                ),
                ("author_id", models.BigIntegerField(null=True)),
                ("channel_id", models.BigIntegerField(null=True)),
                ("message_id", models.BigIntegerField(null=True)),
                ("reason", models.TextField()),
                ("placed_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("lifted_at", models.DateTimeField(null=True)),
                (
                    "lifted_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "placed_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "ordering": ("-id",),
                "default_permissions": ("add", "change", "view"),
                "indexes": [
                    models.Index(
                        condition=models.Q(("lifted_at", None)), fields=["channel_id"], name="hold_in_force"
                    )
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("author_id__isnull", False), ("channel_id__isnull", False), _connector="OR"
                        ),
                        name="hold_names_something",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("message_id", None),
                            models.Q(("author_id", None), ("channel_id__isnull", False)),
                            _connector="OR",
                        ),
                        name="held_message_has_channel",
                    ),
                ],
            },
        ),
        migrations.RunPython(give_rights, migrations.RunPython.noop),
    ]
