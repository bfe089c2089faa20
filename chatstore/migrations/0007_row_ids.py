"""Ids with the logical shard of their guild, and reports that have them."""

import chatstore.models.ids
from django.db import migrations, models

# 41 bits of milliseconds since 2011-01-01T00:00Z, 13 bits of logical shard, 10 bits of sequence.
# The clock is clock_timestamp(): now() does not advance within a transaction and would repeat.
# In Postgres `<<` and `|` have the same precedence and bind from the left, hence the parentheses.
FUNCTIONS = """
CREATE SEQUENCE row_id_sequence;
CREATE FUNCTION make_row_id(unix_ms bigint, shard bigint, sequence bigint) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF shard NOT BETWEEN 0 AND 8191 THEN
        RAISE EXCEPTION 'shard % is outside 0..8191', shard;
    END IF;
    RETURN ((unix_ms - 1293840000000) << 23) | (shard << 10) | (sequence % 1024);
END $$;
CREATE FUNCTION next_id(shard bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN make_row_id(
        floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint, shard, nextval('row_id_sequence'));
END $$;
"""
NO_FUNCTIONS = """
DROP FUNCTION next_id(bigint);
DROP FUNCTION make_row_id(bigint, bigint, bigint);
DROP SEQUENCE row_id_sequence;
"""


class Migration(migrations.Migration):

    dependencies = [
        ('chatstore', '0004_reports'),
    ]

    operations = [
        migrations.RunSQL(FUNCTIONS, reverse_sql=NO_FUNCTIONS),
        migrations.AlterField(
            model_name='reportcase',
            name='id',
            field=models.BigIntegerField(db_default=chatstore.models.ids.NextId(0), primary_key=True, serialize=False),
        ),
        migrations.AlterField(
            model_name='report',
            name='id',
            field=models.BigIntegerField(db_default=chatstore.models.ids.NextId(0), primary_key=True, serialize=False),
        ),
    ]
