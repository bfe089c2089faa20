"""The settings of guilds for the detection of raids, which leads and admins change."""

import django.core.validators
import django.db.models.deletion
from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

GROUPS = ("leads", "admins")
ACTIONS = ("add", "change", "view")


def grant_permissions(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Create the permissions, as 0001 does for the other models, and give them to the groups."""
    kind, _ = apps.get_model("contenttypes", "ContentType").objects.get_or_create(
        app_label="moderation", model="raidsettings"
    )
    for action in ACTIONS:
        permission, _ = apps.get_model("auth", "Permission").objects.get_or_create(
            content_type=kind, codename=f"{action}_raidsettings", defaults={"name": f"Can {action} raid settings"}
        )
        for group in apps.get_model("auth", "Group").objects.filter(name__in=GROUPS):
            group.permissions.add(permission)


class Migration(migrations.Migration):

    dependencies = [
        ('chatstore', '0004_reports'),
        ('moderation', '0009_notes_and_reports'),
    ]

    operations = [
        migrations.CreateModel(
            name='RaidSettings',
            fields=[
                ('guild', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='raid_settings', serialize=False, to='chatstore.guild', verbose_name='guild')),
                ('is_enabled', models.BooleanField(db_default=True, default=True, verbose_name='detect raids')),
                ('messages_per_minute', models.IntegerField(db_default=20, default=20, help_text='A raid has at least this many messages in one of its minutes.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(10000)], verbose_name='messages per minute')),
                ('times_usual', models.IntegerField(db_default=5, default=5, help_text="Messages per minute are unusual from this many times the channel's mean rate of the last 30 days.", validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(1000)], verbose_name='times the usual rate')),
                ('accounts', models.IntegerField(db_default=4, default=4, help_text='A raid has at least this many accounts that take part.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(1000)], verbose_name='accounts')),
                ('account_days', models.IntegerField(db_default=7, default=7, help_text='An account created within these days is new.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(3650)], verbose_name='days of a new account')),
                ('first_seen_hours', models.IntegerField(db_default=24, default=24, help_text='An author is new who may have posted for the first time within these hours (periods of ten days count).', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(8760)], verbose_name='hours of a new author')),
                ('same_text_accounts', models.IntegerField(db_default=3, default=3, help_text='The same or nearly the same text is a sign if at least this many accounts post it.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(1000)], verbose_name='accounts with the same text')),
            ],
            options={
                'verbose_name': 'raid settings',
                'verbose_name_plural': 'raid settings',
                'default_permissions': ('add', 'change', 'view'),
            },
        ),
        migrations.RunPython(grant_permissions, migrations.RunPython.noop),
    ]
