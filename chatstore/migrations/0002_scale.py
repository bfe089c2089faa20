"""Indexes with which the queries of pages and background work stay fast over a year's rows, and `trigrams()`."""

import chatstore.models.functions
import django.contrib.postgres.indexes
from django.conf import settings
from django.db import migrations, models


# Of Postgres's own functions only: the owner of the tables may not be allowed to create an extension such as pg_trgm.
TRIGRAMS = """
CREATE FUNCTION trigrams(text text) RETURNS text[] LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (
    SELECT coalesce(array_agg(substr(lowered, n, 3)), '{}')
    FROM (SELECT lower(text) AS lowered) AS names, generate_series(1, length(lowered) - 2) AS n
);
"""


class Migration(migrations.Migration):

    dependencies = [
        ('chatstore', '0001_v0_2'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RunSQL(TRIGRAMS, "DROP FUNCTION trigrams"),
        migrations.RemoveIndex(
            model_name='jobrun',
            name='run_by_state',
        ),
        migrations.AddIndex(
            model_name='channel',
            index=models.Index(fields=['name', 'id'], name='channel_by_name'),
        ),
        migrations.AddIndex(
            model_name='channel',
            index=django.contrib.postgres.indexes.GinIndex(chatstore.models.functions.NameTrigrams('name'), name='channel_by_trigram'),
        ),
        migrations.AddIndex(
            model_name='channellock',
            index=models.Index(fields=['job'], name='lock_by_job'),
        ),
        migrations.AddIndex(
            model_name='chatuser',
            index=django.contrib.postgres.indexes.GinIndex(chatstore.models.functions.NameTrigrams('name', 'display_name'), name='chat_user_by_trigram'),
        ),
        migrations.AlterField(
            model_name='finding',
            name='severity',
            field=models.IntegerField(choices=[(1, 'warning'), (2, 'critical')]),
        ),
        migrations.AddIndex(
            model_name='jobrun',
            index=models.Index(fields=['job', 'subject', 'ended_at'], name='run_by_subject'),
        ),
        migrations.AddIndex(
            model_name='jobrun',
            index=models.Index(condition=models.Q(('state__in', ('done', 'failed', 'skipped', 'stopped')), _negated=True), fields=['due_at', 'id'], name='run_open'),
        ),
        migrations.AddIndex(
            model_name='jobrun',
            index=models.Index(condition=models.Q(('state', 'failed')), fields=['ended_at'], name='run_failed'),
        ),
    ]
