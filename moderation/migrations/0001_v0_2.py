"""The tables of version 0.2, the first that was published, the function that makes ids, and the groups."""

import django.contrib.postgres.indexes
import django.db.models.deletion
import django.db.models.functions.datetime
import moderation.models.ids
from django.apps.registry import Apps
from django.conf import settings
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


# Ids after Instagram's scheme: 41 bits of milliseconds since 2011-01-01T00:00Z, 13 bits of
# logical shard, 10 bits of sequence. The shard is a setting of the database
# (ALTER DATABASE ... SET chatstore.shard = 7), 0 where there is only one. The clock is
# clock_timestamp(): now() does not advance within a transaction and would repeat.
# In Postgres `<<` and `|` have the same precedence and bind from the left, hence the parentheses.
NEXT_ID = """
CREATE SEQUENCE next_id_sequence;
CREATE FUNCTION next_id() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    milliseconds bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
    shard bigint := coalesce(nullif(current_setting('chatstore.shard', true), ''), '0');
BEGIN
    RETURN ((milliseconds - 1293840000000) << 23)
         | ((shard % 8192) << 10)
         | (nextval('next_id_sequence') % 1024);
END $$;
"""

READERS = ["chatstore.view_channel", "chatstore.view_guild", "moderation.view_purge"]
MODERATORS = [
    *READERS,
    "chatstore.view_chatuser",
    "moderation.add_purge",
    "moderation.view_hold",
    "moderation.add_hold",
]
LEADS = [
    *MODERATORS,
    "moderation.change_hold",
    "moderation.erase_purge",
    "moderation.view_auditentry",
]
OPERATORS = [
    *READERS,
    *(
        f"chatstore.{right}"
        for right in ("view_finding", "view_jobrun", "add_jobrun", "view_jobschedule", "change_jobschedule")
    ),
]
ADMINS = [
    *LEADS,
    *OPERATORS,
    *(f"chatstore.{action}_{model}" for action in ("add", "change") for model in ("guild", "channel", "chatuser")),
]
GROUPS = {"moderators": MODERATORS, "leads": LEADS, "operators": OPERATORS, "admins": ADMINS}

# A permission that no model's default_permissions name: the model that declares it, and its description.
ERASE = ("erasure", "Can erase the copies of a purge")


def make_groups(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Create the groups. Their permissions are created here: Django creates its own only after all migrations."""
    content_types = apps.get_model("contenttypes", "ContentType")
    permissions = apps.get_model("auth", "Permission")
    for name, rights in GROUPS.items():
        group, _ = apps.get_model("auth", "Group").objects.get_or_create(name=name)
        for right in rights:
            app, codename = right.split(".")
            action, model = codename.split("_")
            model, description = ERASE if right == "moderation.erase_purge" else (model, f"Can {action} {model}")
            kind, _ = content_types.objects.get_or_create(app_label=app, model=model)
            permission, _ = permissions.objects.get_or_create(
                content_type=kind, codename=codename, defaults={"name": description}
            )
            group.permissions.add(permission)


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
        ('contenttypes', '0002_remove_content_type_name'),
        ('chatstore', '0001_v0_2'),
        ('auth', '0012_alter_user_first_name_max_length'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RunSQL(NEXT_ID, reverse_sql="DROP FUNCTION next_id; DROP SEQUENCE next_id_sequence"),
        migrations.CreateModel(
            name='Preferences',
            fields=[
                ('account', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='preferences', serialize=False, to=settings.AUTH_USER_MODEL)),
                ('language', models.CharField(blank=True, default='', max_length=20)),
                ('time_zone', models.CharField(default='UTC', max_length=60)),
            ],
            options={
                'verbose_name_plural': 'preferences',
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='Purge',
            fields=[
                ('id', models.BigIntegerField(db_default=moderation.models.ids.NextId(), primary_key=True, serialize=False)),
                ('is_rewrite', models.BooleanField(db_default=False, default=False)),
                ('state', models.CharField(choices=[('draft', 'draft'), ('scanning', 'scanning'), ('ready', 'ready'), ('nothing_matched', 'nothing matched'), ('expired', 'expired'), ('queued', 'queued'), ('running', 'running'), ('waiting', 'waiting'), ('paused', 'paused'), ('cancelling', 'cancelling'), ('cancelled', 'cancelled'), ('done', 'done'), ('done_with_failures', 'done with failures'), ('undoing', 'undoing'), ('undone', 'undone'), ('partly_undone', 'partly undone'), ('undo_expired', 'undo expired'), ('erasing', 'erasing'), ('erased', 'erased')], default='draft', max_length=20)),
                ('selection', models.JSONField()),
                ('reason', models.TextField(blank=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('ready_at', models.DateTimeField(null=True)),
                ('confirmed_at', models.DateTimeField(null=True)),
                ('started_at', models.DateTimeField(null=True)),
                ('finished_at', models.DateTimeField(null=True)),
                ('scanned', models.BigIntegerField(default=0)),
                ('manifest', models.BigIntegerField(default=0)),
                ('held_at_scan', models.BigIntegerField(db_default=0, default=0)),
                ('manifest_hash', models.BinaryField(null=True)),
                ('wait_reason', models.TextField(blank=True)),
                ('wait_until', models.DateTimeField(null=True)),
                ('wakeup_expires_at', models.DateTimeField(null=True)),
                ('scan_token', models.UUIDField(null=True)),
                ('scan_lease_until', models.DateTimeField(null=True)),
                ('error', models.TextField(blank=True)),
                ('moderator', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ('-id',),
                'default_permissions': ('add', 'view'),
            },
        ),
        migrations.CreateModel(
            name='ManifestBucket',
            fields=[
                ('pk', models.CompositePrimaryKey('purge_id', 'channel_id', 'bucket', blank=True, editable=False, primary_key=True, serialize=False)),
                ('channel_id', models.BigIntegerField()),
                ('bucket', models.IntegerField()),
                ('count', models.IntegerField()),
                ('first_id', models.BigIntegerField(null=True)),
                ('last_id', models.BigIntegerField(null=True)),
                ('manifest_hash', models.BinaryField(null=True)),
                ('survivors', models.IntegerField()),
                ('authors', models.JSONField()),
                ('plan', models.JSONField()),
                ('purge', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='manifest_buckets', to='moderation.purge')),
            ],
            options={
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='Erasure',
            fields=[
                ('id', models.BigIntegerField(db_default=moderation.models.ids.NextId(), primary_key=True, serialize=False)),
                ('requested_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('reason', models.TextField()),
                ('also_kept', models.JSONField(default=dict)),
                ('decision', models.CharField(blank=True, choices=[('', ''), ('approved', 'approved'), ('rejected', 'rejected'), ('held', 'held')], default='', max_length=10)),
                ('decided_at', models.DateTimeField(null=True)),
                ('previous_state', models.CharField(blank=True, max_length=20)),
                ('stamp', models.BigIntegerField(null=True)),
                ('channels_left', models.JSONField(default=list)),
                ('lease_until', models.DateTimeField(null=True)),
                ('wait_reason', models.TextField(blank=True)),
                ('unreadable_at', models.DateTimeField(null=True)),
                ('off_disk_at', models.DateTimeField(null=True)),
                ('decided_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('requested_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('purge', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='erasures', to='moderation.purge')),
            ],
            options={
                'ordering': ('-id',),
                'permissions': (('erase_purge', 'Can erase the copies of a purge'),),
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='AuditEntry',
            fields=[
                ('id', models.BigIntegerField(db_default=moderation.models.ids.NextId(), primary_key=True, serialize=False)),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('action', models.CharField(max_length=40)),
                ('channel_id', models.BigIntegerField(null=True)),
                ('details', models.JSONField(default=dict)),
                ('ids', models.BinaryField(null=True)),
                ('actor', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('purge', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='audit', to='moderation.purge')),
            ],
            options={
                'verbose_name_plural': 'audit entries',
                'ordering': ('-id',),
                'default_permissions': ('view',),
            },
        ),
        migrations.CreateModel(
            name='Undo',
            fields=[
                ('id', models.BigIntegerField(db_default=moderation.models.ids.NextId(), primary_key=True, serialize=False)),
                ('requested_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('finished_at', models.DateTimeField(null=True)),
                ('part', models.JSONField()),
                ('moderator', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('purge', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='undos', to='moderation.purge')),
            ],
            options={
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='Step',
            fields=[
                ('pk', models.CompositePrimaryKey('purge_id', 'ordinal', blank=True, editable=False, primary_key=True, serialize=False)),
                ('ordinal', models.IntegerField()),
                ('channel_id', models.BigIntegerField()),
                ('bucket', models.IntegerField()),
                ('kind', models.CharField(choices=[('rows', 'rows'), ('ranges', 'ranges'), ('later', 'later'), ('rewrite', 'rewrite')], max_length=10)),
                ('state', models.CharField(choices=[('pending', 'pending'), ('quarantining', 'quarantining'), ('quarantined', 'quarantined'), ('stamped', 'stamped'), ('rewritten', 'rewritten'), ('deleted', 'deleted'), ('verified', 'verified'), ('closed', 'closed'), ('counted', 'counted'), ('held', 'held'), ('cancelled', 'cancelled'), ('failed', 'failed')], default='pending', max_length=12)),
                ('ids', models.BinaryField()),
                ('count', models.IntegerField()),
                ('first_id', models.BigIntegerField(null=True)),
                ('last_id', models.BigIntegerField(null=True)),
                ('sketch', models.BinaryField(null=True)),
                ('due_at', models.DateTimeField(null=True)),
                ('token', models.UUIDField(null=True)),
                ('lease_until', models.DateTimeField(null=True)),
                ('read_stamp', models.BigIntegerField(null=True)),
                ('delete_stamp', models.BigIntegerField(null=True)),
                ('quarantined_at', models.DateTimeField(null=True)),
                ('renewed_at', models.DateTimeField(null=True)),
                ('copies_stored_at', models.DateTimeField(null=True)),
                ('strategy', models.CharField(blank=True, max_length=10)),
                ('ranges', models.JSONField(null=True)),
                ('survivors', models.BinaryField(null=True)),
                ('gone_ids', models.BinaryField(null=True)),
                ('failed_ids', models.BinaryField(null=True)),
                ('deleted', models.IntegerField(default=0)),
                ('already_gone', models.IntegerField(default=0)),
                ('held', models.IntegerField(default=0)),
                ('failed', models.IntegerField(default=0)),
                ('tombstones', models.IntegerField(null=True)),
                ('wait_reason', models.TextField(blank=True)),
                ('error', models.TextField(blank=True)),
                ('undone_ids', models.BinaryField(null=True)),
                ('counted_at', models.DateTimeField(null=True)),
                ('purge', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='steps', to='moderation.purge')),
            ],
            options={
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='UndoStep',
            fields=[
                ('pk', models.CompositePrimaryKey('undo_id', 'ordinal', blank=True, editable=False, primary_key=True, serialize=False)),
                ('ordinal', models.IntegerField()),
                ('channel_id', models.BigIntegerField()),
                ('bucket', models.IntegerField()),
                ('state', models.CharField(choices=[('pending', 'pending'), ('planning', 'planning'), ('stamped', 'stamped'), ('restored', 'restored'), ('verified', 'verified'), ('closed', 'closed'), ('counted', 'counted')], default='pending', max_length=12)),
                ('due_at', models.DateTimeField(null=True)),
                ('token', models.UUIDField(null=True)),
                ('lease_until', models.DateTimeField(null=True)),
                ('restore_stamp', models.BigIntegerField(null=True)),
                ('restore_ids', models.BinaryField(null=True)),
                ('skipped_ids', models.BinaryField(null=True)),
                ('failed_ids', models.BinaryField(null=True)),
                ('requested', models.IntegerField(db_default=0, default=0)),
                ('restored', models.IntegerField(db_default=0, default=0)),
                ('withdrawn', models.IntegerField(db_default=0, default=0)),
                ('still_purged', models.IntegerField(db_default=0, default=0)),
                ('already_live', models.IntegerField(db_default=0, default=0)),
                ('no_copy', models.IntegerField(db_default=0, default=0)),
                ('failed', models.IntegerField(default=0)),
                ('wait_reason', models.TextField(blank=True)),
                ('error', models.TextField(blank=True)),
                ('counted_at', models.DateTimeField(null=True)),
                ('purge', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='undo_steps', to='moderation.purge')),
                ('undo', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='steps', to='moderation.undo')),
            ],
            options={
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='Hold',
            fields=[
                ('id', models.BigIntegerField(db_default=moderation.models.ids.NextId(), primary_key=True, serialize=False)),
                ('author_id', models.BigIntegerField(null=True)),
                ('channel_id', models.BigIntegerField(null=True)),
                ('message_id', models.BigIntegerField(null=True)),
                ('reason', models.TextField()),
                ('placed_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('lifted_at', models.DateTimeField(null=True)),
                ('lifted_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('placed_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ('-id',),
                'default_permissions': ('add', 'change', 'view'),
                'indexes': [models.Index(condition=models.Q(('lifted_at', None)), fields=['channel_id'], name='hold_in_force')],
                'constraints': [models.CheckConstraint(condition=models.Q(('author_id__isnull', False), ('channel_id__isnull', False), _connector='OR'), name='hold_names_something'), models.CheckConstraint(condition=models.Q(('message_id', None), models.Q(('author_id', None), ('channel_id__isnull', False)), _connector='OR'), name='held_message_has_channel')],
            },
        ),
        migrations.AddIndex(
            model_name='purge',
            index=models.Index(fields=['state'], name='purge_by_state'),
        ),
        migrations.AddIndex(
            model_name='manifestbucket',
            index=models.Index(fields=['channel_id', 'bucket'], name='manifest_by_bucket'),
        ),
        migrations.AddIndex(
            model_name='manifestbucket',
            index=django.contrib.postgres.indexes.GinIndex(fields=['authors'], name='manifest_by_author'),
        ),
        migrations.AddIndex(
            model_name='erasure',
            index=models.Index(condition=models.Q(('off_disk_at', None)), fields=['purge'], name='erasure_not_off_disk'),
        ),
        migrations.AddConstraint(
            model_name='erasure',
            constraint=models.UniqueConstraint(condition=models.Q(('decision', 'approved')), fields=('purge',), name='one_approved_erasure'),
        ),
        migrations.AddIndex(
            model_name='step',
            index=models.Index(fields=['state', 'due_at'], name='step_by_state'),
        ),
        migrations.AddIndex(
            model_name='step',
            index=models.Index(fields=['channel_id', 'bucket'], name='step_by_bucket'),
        ),
        migrations.AddIndex(
            model_name='step',
            index=models.Index(fields=['bucket', 'first_id', 'last_id'], name='step_by_ids'),
        ),
        migrations.AddIndex(
            model_name='undostep',
            index=models.Index(fields=['state', 'due_at'], name='undostep_by_state'),
        ),
        migrations.AddIndex(
            model_name='undostep',
            index=models.Index(fields=['channel_id', 'bucket'], name='undostep_by_bucket'),
        ),
        migrations.RunPython(make_groups, migrations.RunPython.noop),
    ]
