"""Indexes for the maximum of each day over all channels, in place of the one by day."""

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):

    # Indexes are built without a lock against inserts, which no transaction allows.
    atomic = False

    dependencies = [
        ('chatstore', '0008_role_grants'),
    ]

    operations = [
        AddIndexConcurrently(
            model_name='channelday',
            index=models.Index(fields=['day', 'tombstones'], name='channel_days_by_tombstones'),
        ),
        AddIndexConcurrently(
            model_name='channelday',
            index=models.Index(fields=['day', 'bytes'], name='channel_days_by_bytes'),
        ),
        AddIndexConcurrently(
            model_name='channelday',
            index=models.Index(fields=['day', 'read_ms'], name='channel_days_by_read_ms'),
        ),
        RemoveIndexConcurrently(
            model_name='channelday',
            name='channel_days_by_day',
        ),
    ]
