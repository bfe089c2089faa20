"""Ids that rise with time, and selections of many channels.

In Postgres `<<` and `|` bind equally and from the left: without parentheses the
milliseconds were shifted by 33 bits instead of 23, and the ids' order turned over every 25 days.
"""

from django.db import migrations

NEXT_ID = """
CREATE OR REPLACE FUNCTION next_id() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    milliseconds bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
    shard bigint := coalesce(nullif(current_setting('chatstore.shard', true), ''), '0');
BEGIN
    RETURN ((milliseconds - 1293840000000) << 23)
         | ((shard % 8192) << 10)
         | (nextval('next_id_sequence') % 1024);
END $$;
"""


def name_many_channels(apps, schema_editor):
    """From one channel with authors and ids to channels with a filter."""
    purges = apps.get_model("moderation", "Purge").objects.filter(selection__has_key="channel")
    for purge_id, old in purges.values_list("id", "selection").iterator(chunk_size=200):
        conditions = [{"author": old["authors"]}] if old["authors"] else []
        conditions += [{"since": old["after"]}] if old["after"] is not None else []
        conditions += [{"before": old["before"]}] if old["before"] is not None else []
        purges.filter(id=purge_id).update(
            selection={
                "channels": [old["channel"]],
                "guild": None,
                "messages": old["messages"],
                "where": {"all": conditions} if conditions else None,
                "with_pinned": True,
                "except": [],
                "everything": old["everything"],
            }
        )


class Migration(migrations.Migration):

    dependencies = [
        ('moderation', '0004_finding_messages'),
    ]

    operations = [
        migrations.RunSQL(NEXT_ID, reverse_sql=migrations.RunSQL.noop),
        migrations.RunPython(name_many_channels, migrations.RunPython.noop, elidable=True),
    ]
