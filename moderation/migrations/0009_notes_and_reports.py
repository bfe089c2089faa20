"""Notes on chat users, and who may read and write them, and read and resolve members' reports."""

import django.db.models.deletion
import django.db.models.functions.datetime
import moderation.models.ids
from django.apps.registry import Apps
from django.conf import settings
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

GROUPS = ("moderators", "leads", "admins")
RIGHTS = ("moderation.view_note", "moderation.add_note", "chatstore.view_reportcase", "chatstore.change_reportcase")
NAMES = {"note": "note", "reportcase": "report case"}


def grant_rights(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Grant the permissions. They are created here: Django creates its own only after all migrations."""
    content_types = apps.get_model("contenttypes", "ContentType")
    permissions = apps.get_model("auth", "Permission")
    for right in RIGHTS:
        app, codename = right.split(".")
        action, model = codename.split("_")
        kind, _ = content_types.objects.get_or_create(app_label=app, model=model)
        permission, _ = permissions.objects.get_or_create(
            content_type=kind, codename=codename, defaults={"name": f"Can {action} {NAMES[model]}"}
        )
        for group in apps.get_model("auth", "Group").objects.filter(name__in=GROUPS):
            group.permissions.add(permission)


class Migration(migrations.Migration):

    dependencies = [
        ('chatstore', '0004_reports'),
        ('moderation', '0008_steps_in_parts'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Note',
            fields=[
                ('id', models.BigIntegerField(db_default=moderation.models.ids.NextId(), primary_key=True, serialize=False)),
                ('user_id', models.BigIntegerField()),
                ('text', models.TextField()),
                ('written_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('channel_id', models.BigIntegerField(null=True)),
                ('message_id', models.BigIntegerField(null=True)),
                ('purge', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='moderation.purge')),
                ('written_by', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ('-id',),
                'default_permissions': ('add', 'view'),
                'indexes': [models.Index(fields=['user_id', 'id'], name='note_by_user')],
            },
        ),
        migrations.RunPython(grant_rights, migrations.RunPython.noop),
    ]
