"""The guild and the chat user of each entry of the audit log, with indexes.

They come before the migration that refuses changes: afterwards existing entries cannot be filled.
"""

import django.contrib.postgres.operations
from django.db import migrations, models

# One pass over each index of those that name a purge or a channel. 0 is "several guilds, or none".
FILL = """
UPDATE moderation_auditentry entry SET guild_id = guild.id
FROM moderation_purge purge, chatstore_guild guild
WHERE purge.id = entry.purge_id AND guild.id = purge.guild_id AND entry.guild_id IS NULL;
UPDATE moderation_auditentry entry SET guild_id = channel.guild_id
FROM chatstore_channel channel
WHERE channel.id = entry.channel_id AND channel.guild_id IS NOT NULL AND entry.guild_id IS NULL;
UPDATE moderation_auditentry SET chat_user_id = (details ->> 'user')::bigint
WHERE action IN ('note_added', 'note_deleted') AND details ->> 'user' ~ '^[0-9]{1,19}$';
UPDATE moderation_auditentry SET chat_user_id = (details ->> 'author')::bigint
WHERE action IN ('hold_placed', 'hold_lifted') AND details ->> 'author' ~ '^[0-9]{1,19}$';
"""


class Migration(migrations.Migration):

    # Indexes are built without a lock against inserts, which no transaction allows.
    atomic = False

    dependencies = [
        ('chatstore', '0007_row_ids'),
        ('moderation', '0022_pinned_channels'),
    ]

    operations = [
        migrations.AddField(
            model_name='auditentry',
            name='guild_id',
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name='auditentry',
            name='chat_user_id',
            field=models.BigIntegerField(null=True),
        ),
        migrations.RunSQL(FILL, reverse_sql=migrations.RunSQL.noop),
        django.contrib.postgres.operations.AddIndexConcurrently(
            model_name='auditentry',
            index=models.Index(condition=models.Q(('guild_id__isnull', False)), fields=['guild_id', 'id'], name='audit_by_guild'),
        ),
        django.contrib.postgres.operations.AddIndexConcurrently(
            model_name='auditentry',
            index=models.Index(condition=models.Q(('chat_user_id__isnull', False)), fields=['chat_user_id', 'id'], name='audit_by_chat_user'),
        ),
    ]
