"""Purges belong to the guilds and channels that their filters name too, not only to those in which they matched."""

from django.db import migrations

WIDEN_REACH = """
UPDATE moderation_purge AS purge
SET guild_ids = (
        SELECT array_agg(DISTINCT guild ORDER BY guild) FROM (
            SELECT unnest(purge.guild_ids) UNION SELECT coalesce(channel.guild_id, 0) FROM chatstore_channel AS channel
            WHERE channel.id IN (SELECT jsonb_array_elements_text(purge.selection -> 'channels')::bigint)
        ) AS reached (guild)
    ),
    channel_ids = (
        SELECT CASE WHEN count(*) <= 200 THEN array_agg(channel ORDER BY channel) END FROM (
            SELECT unnest(purge.channel_ids)
            UNION SELECT jsonb_array_elements_text(purge.selection -> 'channels')::bigint
        ) AS reached (channel) WHERE purge.channel_ids IS NOT NULL
    )
WHERE purge.guild_ids IS NOT NULL AND NOT purge.is_rewrite AND jsonb_array_length(purge.selection -> 'channels') > 1;
UPDATE moderation_purge SET channel_ids = NULL
WHERE channel_ids IS NOT NULL AND NOT is_rewrite
    AND selection ->> 'guild' IS NOT NULL AND selection ->> 'within' IS NULL;
"""


class Migration(migrations.Migration):

    dependencies = [
        ('moderation', '0032_purge_limits'),
    ]

    operations = [
        migrations.RunSQL(WIDEN_REACH, migrations.RunSQL.noop),
    ]
