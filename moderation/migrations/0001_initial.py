import django.db.models.deletion
import django.db.models.functions.datetime
import moderation.domain.states
import moderation.models.ids
from django.conf import settings
from django.db import migrations, models


# Ids after Instagram's scheme: 41 bits of milliseconds since 2011-01-01T00:00Z, 13 bits of
# logical shard, 10 bits of sequence. The shard is a setting of the database
# (ALTER DATABASE ... SET chatstore.shard = 7), 0 where there is only one. The clock is
# clock_timestamp(): now() stands still in a transaction and would repeat.
NEXT_ID = """
CREATE SEQUENCE next_id_sequence;
CREATE FUNCTION next_id() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    milliseconds bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
    shard bigint := coalesce(nullif(current_setting('chatstore.shard', true), ''), '0');
BEGIN
    RETURN (milliseconds - 1293840000000) << 23
         | (shard % 8192) << 10
         | nextval('next_id_sequence') % 1024;
END $$;
"""


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RunSQL(NEXT_ID, reverse_sql="DROP FUNCTION next_id; DROP SEQUENCE next_id_sequence"),
        migrations.CreateModel(
            name='Purge',
            fields=[
                ('id', models.BigIntegerField(db_default=moderation.models.ids.NextId(), primary_key=True, serialize=False)),
                ('state', models.CharField(choices=[('draft', 'draft'), ('scanning', 'scanning'), ('ready', 'ready'), ('nothing_matched', 'nothing matched'), ('expired', 'expired'), ('queued', 'queued'), ('running', 'running'), ('waiting', 'waiting'), ('cancelling', 'cancelling'), ('cancelled', 'cancelled'), ('done', 'done'), ('done_with_failures', 'done with failures')], default=moderation.domain.states.PurgeState['DRAFT'], max_length=20)),
                ('selection', models.JSONField()),
                ('reason', models.TextField(blank=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('ready_at', models.DateTimeField(null=True)),
                ('confirmed_at', models.DateTimeField(null=True)),
                ('started_at', models.DateTimeField(null=True)),
                ('finished_at', models.DateTimeField(null=True)),
                ('scanned', models.BigIntegerField(default=0)),
                ('manifest', models.BigIntegerField(default=0)),
                ('digest', models.BinaryField(null=True)),
                ('wait_reason', models.TextField(blank=True)),
                ('wait_until', models.DateTimeField(null=True)),
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
                ('refused', models.IntegerField(default=0)),
                ('first_id', models.BigIntegerField(null=True)),
                ('last_id', models.BigIntegerField(null=True)),
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
            name='AuditEntry',
            fields=[
                ('id', models.BigIntegerField(db_default=moderation.models.ids.NextId(), primary_key=True, serialize=False)),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('act', models.CharField(max_length=40)),
                ('channel_id', models.BigIntegerField(null=True)),
                ('details', models.JSONField(default=dict)),
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
            name='Step',
            fields=[
                ('pk', models.CompositePrimaryKey('purge_id', 'ordinal', blank=True, editable=False, primary_key=True, serialize=False)),
                ('ordinal', models.IntegerField()),
                ('channel_id', models.BigIntegerField()),
                ('bucket', models.IntegerField()),
                ('kind', models.CharField(choices=[('rows', 'rows'), ('spans', 'spans'), ('later', 'later')], max_length=10)),
                ('state', models.CharField(choices=[('pending', 'pending'), ('quarantining', 'quarantining'), ('quarantined', 'quarantined'), ('stamped', 'stamped'), ('rewritten', 'rewritten'), ('deleted', 'deleted'), ('verified', 'verified'), ('closed', 'closed'), ('counted', 'counted'), ('cancelled', 'cancelled'), ('failed', 'failed')], default=moderation.domain.states.StepState['PENDING'], max_length=12)),
                ('ids', models.BinaryField()),
                ('count', models.IntegerField()),
                ('due_at', models.DateTimeField(null=True)),
                ('token', models.UUIDField(null=True)),
                ('lease_until', models.DateTimeField(null=True)),
                ('read_stamp', models.BigIntegerField(null=True)),
                ('delete_stamp', models.BigIntegerField(null=True)),
                ('quarantined_at', models.DateTimeField(null=True)),
                ('how', models.CharField(blank=True, max_length=10)),
                ('spans', models.JSONField(null=True)),
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
                ('counted_at', models.DateTimeField(null=True)),
                ('purge', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='steps', to='moderation.purge')),
            ],
            options={
                'default_permissions': (),
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
            model_name='step',
            index=models.Index(fields=['state', 'due_at'], name='step_by_state'),
        ),
        migrations.AddIndex(
            model_name='step',
            index=models.Index(fields=['channel_id', 'bucket'], name='step_by_bucket'),
        ),
    ]
