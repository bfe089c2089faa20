"""Parts of running scans; scans that were begun before continue where they were."""

import django.db.models.deletion
from django.db import migrations, models

# A scan knew one channel of which it might find more; several workers know several. What has the key is the summary of
# a scan, and not of a frozen manifest, so discarded previews have it too.
OPEN_CHANNELS = """
UPDATE moderation_manifestsummary SET data = (data - 'last_channel') || jsonb_build_object(
    'open_channels', CASE data -> 'last_channel' WHEN 'null' THEN '[]' ELSE jsonb_build_array(data -> 'last_channel') END
) WHERE data ? 'last_channel'
"""
LAST_CHANNEL = """
UPDATE moderation_manifestsummary SET data = (data - 'open_channels') || jsonb_build_object(
    'last_channel', data -> 'open_channels' -> -1
) WHERE data ? 'open_channels'
"""


class Migration(migrations.Migration):

    dependencies = [
        ('moderation', '0018_request_ids'),
    ]

    operations = [
        migrations.CreateModel(
            name='ScanPart',
            fields=[
                ('pk', models.CompositePrimaryKey('purge_id', 'channel_id', 'bucket', blank=True, editable=False, primary_key=True, serialize=False)),
                ('channel_id', models.BigIntegerField()),
                ('bucket', models.IntegerField()),
                ('buckets', models.JSONField()),
                ('is_split', models.BooleanField()),
                ('token', models.UUIDField(null=True)),
                ('lease_until', models.DateTimeField(null=True)),
                ('purge', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='scan_parts', to='moderation.purge')),
            ],
            options={
                'default_permissions': (),
            },
        ),
        migrations.RunSQL(OPEN_CHANNELS, reverse_sql=LAST_CHANNEL),
    ]
