"""The state of a channel follows from its open findings too, not only from its figures."""

import django.db.models.functions.comparison
from django.db import migrations, models

STATES = [(1, 'healthy'), (2, 'unknown'), (3, 'slow'), (4, 'heavy'), (5, 'tombstones'), (6, 'missing_messages')]

FILL = """
UPDATE chatstore_finding SET channel_id = split_part(subject, ':', 1)::bigint
WHERE closed_at IS NULL AND kind IN ('heavy bucket', 'missing survivors');
UPDATE chatstore_channelsummary AS summary SET finding_state = found.state
FROM (
    SELECT channel_id, max(
        CASE WHEN kind = 'missing survivors' THEN 6 WHEN details ? 'tombstones' THEN 5 ELSE 4 END
    ) AS state
    FROM chatstore_finding WHERE closed_at IS NULL AND channel_id IS NOT NULL GROUP BY channel_id
) AS found WHERE found.channel_id = summary.channel_id;
"""

ADD_WITH = """
CREATE OR REPLACE FUNCTION add_channel_summaries() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO chatstore_channelsummary (channel_id, guild_id, {state}, due_at)
    SELECT id, guild_id, 2, clock_timestamp() FROM added ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
"""


class Migration(migrations.Migration):

    dependencies = [
        ('chatstore', '0015_admin_labels'),
    ]

    operations = [
        migrations.AddField('finding', 'channel_id', models.BigIntegerField(null=True)),
        migrations.AddIndex(
            'finding',
            models.Index(
                fields=['channel_id'],
                condition=models.Q(('channel_id__isnull', False), ('closed_at', None)),
                name='finding_by_channel',
            ),
        ),
        migrations.RemoveIndex('channelsummary', 'summary_by_state'),
        migrations.RenameField('channelsummary', 'state', 'figure_state'),
        migrations.AlterField('channelsummary', 'figure_state', models.SmallIntegerField(choices=STATES, default=2)),
        migrations.AddField('channelsummary', 'finding_state', models.SmallIntegerField(choices=STATES, null=True)),
        migrations.AddField(
            'channelsummary',
            'state',
            models.GeneratedField(
                db_persist=True,
                expression=django.db.models.functions.comparison.Greatest('figure_state', 'finding_state'),
                output_field=models.SmallIntegerField(choices=STATES),
            ),
        ),
        migrations.AddIndex('channelsummary', models.Index(fields=['state', 'channel'], name='summary_by_state')),
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
        migrations.RunSQL(ADD_WITH.format(state='figure_state'), ADD_WITH.format(state='state')),
    ]
