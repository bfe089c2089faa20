"""One row of figures per channel, for the table of all channels."""

import datetime
import django.db.models.deletion
import django.db.models.functions.comparison
from django.db import migrations, models

# Channels are added and moved by several statements of several programs; every one of them is listed.
TRIGGERS = """
CREATE FUNCTION add_channel_summaries() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO chatstore_channelsummary (channel_id, guild_id, state, due_at)
    SELECT id, guild_id, 2, clock_timestamp() FROM added ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER channel_summaries AFTER INSERT ON chatstore_channel
REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION add_channel_summaries();

CREATE FUNCTION move_channel_summary() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE chatstore_channelsummary SET guild_id = NEW.guild_id WHERE channel_id = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER channel_summary_guild AFTER UPDATE OF guild_id ON chatstore_channel
FOR EACH ROW WHEN (OLD.guild_id IS DISTINCT FROM NEW.guild_id) EXECUTE FUNCTION move_channel_summary();
"""

NO_TRIGGERS = """
DROP TRIGGER channel_summary_guild ON chatstore_channel;
DROP FUNCTION move_channel_summary();
DROP TRIGGER channel_summaries ON chatstore_channel;
DROP FUNCTION add_channel_summaries();
"""

FILL = """
INSERT INTO chatstore_channelsummary (channel_id, guild_id, state, due_at)
SELECT id, guild_id, 2, clock_timestamp() FROM chatstore_channel;
"""

# The tables of purges belong to the other app, and do not exist yet in a new installation.
FILL_PURGES = """
DO $$ BEGIN
    IF to_regclass('moderation_step') IS NOT NULL THEN
        UPDATE chatstore_channelsummary AS summary SET last_purge_id = purge_id, last_purged_at = finished_at
        FROM (
            SELECT DISTINCT ON (step.channel_id) step.channel_id, step.purge_id, purge.finished_at
            FROM moderation_step AS step JOIN moderation_purge AS purge ON purge.id = step.purge_id
            WHERE step.counted_at IS NOT NULL AND purge.finished_at IS NOT NULL AND NOT purge.is_rewrite
            ORDER BY step.channel_id, purge.finished_at DESC
        ) AS last WHERE last.channel_id = summary.channel_id;
    END IF;
END $$;
"""


class Migration(migrations.Migration):

    dependencies = [
        ('chatstore', '0002_scale'),
    ]

    operations = [
        migrations.CreateModel(
            name='ChannelSummary',
            fields=[
                ('channel', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='summary', serialize=False, to='chatstore.channel')),
                ('guild', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='chatstore.guild')),
                ('state', models.SmallIntegerField(choices=[(1, 'healthy'), (2, 'unknown'), (3, 'slow'), (4, 'heavy'), (5, 'tombstones')], default=2)),
                ('tombstones', models.BigIntegerField(null=True)),
                ('tombstones_bucket', models.IntegerField(null=True)),
                ('tombstones_at', models.DateTimeField(null=True)),
                ('bytes', models.BigIntegerField(null=True)),
                ('bytes_bucket', models.IntegerField(null=True)),
                ('bytes_at', models.DateTimeField(null=True)),
                ('page_us', models.BigIntegerField(null=True)),
                ('page_rows', models.BigIntegerField(null=True)),
                ('page_tombstones', models.BigIntegerField(null=True)),
                ('page_at', models.DateTimeField(null=True)),
                ('buckets', models.IntegerField(null=True)),
                ('empty_buckets', models.IntegerField(null=True)),
                ('empty_share', models.FloatField(null=True)),
                ('uncovered_deletes', models.BigIntegerField(null=True)),
                ('uncovered_at', models.DateTimeField(null=True)),
                ('last_purge_id', models.BigIntegerField(null=True)),
                ('last_purged_at', models.DateTimeField(null=True)),
                ('refreshed_at', models.DateTimeField(null=True)),
                ('due_at', models.DateTimeField(null=True)),
            ],
            options={
                'default_permissions': (),
                'indexes': [models.Index(fields=['state', 'channel'], name='summary_by_state'), models.Index(django.db.models.functions.comparison.Coalesce('tombstones', -1), models.F('channel'), name='summary_by_tombstones'), models.Index(django.db.models.functions.comparison.Coalesce('bytes', -1), models.F('channel'), name='summary_by_bytes'), models.Index(django.db.models.functions.comparison.Coalesce('page_us', -1), models.F('channel'), name='summary_by_page'), models.Index(django.db.models.functions.comparison.Coalesce('empty_share', -1.0), models.F('channel'), name='summary_by_empty_share'), models.Index(django.db.models.functions.comparison.Coalesce('uncovered_deletes', -1), models.F('channel'), name='summary_by_uncovered'), models.Index(django.db.models.functions.comparison.Coalesce('last_purged_at', models.Value(datetime.datetime(1970, 1, 1, 0, 0, tzinfo=datetime.timezone.utc))), models.F('channel'), name='summary_by_last_purge'), models.Index(condition=models.Q(('due_at__isnull', False)), fields=['due_at'], name='summary_due')],
            },
        ),
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
        migrations.RunSQL(FILL_PURGES, migrations.RunSQL.noop),
        migrations.RunSQL(TRIGGERS, NO_TRIGGERS),
    ]
