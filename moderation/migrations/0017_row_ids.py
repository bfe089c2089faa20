"""Ids without a guild are those of shard 0; the database has no shard of its own any more."""

from django.db import migrations

NEXT_ID = """
CREATE OR REPLACE FUNCTION next_id() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN next_id(0);
END $$;
DROP SEQUENCE next_id_sequence;
"""
OLD_NEXT_ID = """
CREATE SEQUENCE next_id_sequence;
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


class Migration(migrations.Migration):

    dependencies = [
        ('moderation', '0012_accounts'),
        ('chatstore', '0007_row_ids'),
    ]

    operations = [migrations.RunSQL(NEXT_ID, reverse_sql=OLD_NEXT_ID)]
