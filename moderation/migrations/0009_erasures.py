"""Erasing what a purge keeps, and who may have it done."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.apps.registry import Apps
from django.conf import settings
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

import moderation.domain.states
import moderation.models.ids


def give_right(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """The permission is made here by hand: Django makes its own only after all migrations."""
    kind, _ = apps.get_model("contenttypes", "ContentType").objects.get_or_create(
        app_label="moderation", model="erasure"
    )
    permission, _ = apps.get_model("auth", "Permission").objects.get_or_create(
        content_type=kind, codename="erase_purge", defaults={"name": "Can have erased what a purge keeps"}
    )
    for name in ("leads", "admins"):
        group, _ = apps.get_model("auth", "Group").objects.get_or_create(name=name)
        group.permissions.add(permission)


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("moderation", "0008_holds"),
    ]
    operations = [
        migrations.AlterField(
            model_name="purge",
            name="state",
            field=models.CharField(
                choices=[
                    ("draft", "draft"),
                    ("scanning", "scanning"),
                    ("ready", "ready"),
                    ("nothing_matched", "nothing matched"),
                    ("expired", "expired"),
                    ("queued", "queued"),
                    ("running", "running"),
                    ("waiting", "waiting"),
                    ("paused", "paused"),
                    ("cancelling", "cancelling"),
                    ("cancelled", "cancelled"),
                    ("done", "done"),
                    ("done_with_failures", "done with failures"),
                    ("undoing", "undoing"),
                    ("undone", "undone"),
                    ("partly_undone", "partly undone"),
                    ("undo_expired", "undo expired"),
                    ("erasing", "erasing"),
                    ("erased", "erased"),
                ],
                default=moderation.domain.states.PurgeState["DRAFT"],
                max_length=20,
            ),
        ),
        migrations.CreateModel(
            name="Erasure",
            fields=[
                (
                    "id",
                    models.BigIntegerField(
                        db_default=moderation.models.ids.NextId(), primary_key=True, serialize=False
                    ),
                ),
                ("asked_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("reason", models.TextField()),
                ("also_kept", models.JSONField(default=dict)),
                (
                    "answer",
                    models.CharField(
                        blank=True,
                        choices=[("", ""), ("approved", "approved"), ("refused", "refused"), ("held", "held")],
                        default=moderation.domain.states.ErasureAnswer["NONE"],
                        max_length=10,
                    ),
                ),
                ("answered_at", models.DateTimeField(null=True)),
                ("was", models.CharField(blank=True, max_length=20)),
                ("stamp", models.BigIntegerField(null=True)),
                ("channels_left", models.JSONField(default=list)),
                ("lease_until", models.DateTimeField(null=True)),
                ("wait_reason", models.TextField(blank=True)),
                ("unreadable_at", models.DateTimeField(null=True)),
                ("off_disk_at", models.DateTimeField(null=True)),
                (
                    "answered_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "asked_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "purge",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="erasures", to="moderation.purge"
                    ),
                ),
            ],
            options={
                "ordering": ("-id",),
                "permissions": (("erase_purge", "Can have erased what a purge keeps"),),
                "default_permissions": (),
                "indexes": [
                    models.Index(
                        condition=models.Q(("off_disk_at", None)), fields=["purge"], name="erasure_not_off_disk"
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("answer", "approved")), fields=("purge",), name="one_approved_erasure"
                    )
                ],
            },
        ),
        migrations.RunPython(give_right, migrations.RunPython.noop),
    ]
