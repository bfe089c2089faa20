"""The hash chain of the audit log: links, and the entries that have none yet."""

import django.db.models.functions.datetime
from django.db import migrations, models

# The row commits with its entry, whatever the order of ids and however late: no committed entry can be missed.
QUEUE = """
CREATE FUNCTION queue_audit_entries() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO moderation_unlinkedentry (entry_id) SELECT id FROM inserted;
    RETURN NULL;
END $$;
CREATE TRIGGER audit_queue AFTER INSERT ON moderation_auditentry
    REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION queue_audit_entries();
CREATE TRIGGER audit_is_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON moderation_auditlink
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change();
SELECT protect_audit_log();
"""

# Creating the trigger waited for every transaction that had inserted without it.
QUEUE_EXISTING = """
INSERT INTO moderation_unlinkedentry (entry_id) SELECT id FROM moderation_auditentry ON CONFLICT DO NOTHING;
"""


class Migration(migrations.Migration):

    # Inserts must not wait for the last statement, which takes some seconds for each million entries.
    atomic = False

    dependencies = [
        ('moderation', '0024_audit_append_only'),
    ]

    operations = [
        migrations.CreateModel(
            name='AuditLink',
            fields=[
                ('position', models.BigIntegerField(primary_key=True, serialize=False)),
                ('entry_id', models.BigIntegerField(unique=True)),
                ('version', models.SmallIntegerField()),
                ('hash', models.BinaryField()),
                ('linked_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={'default_permissions': ()},
        ),
        migrations.CreateModel(
            name='UnlinkedEntry',
            fields=[
                ('entry_id', models.BigIntegerField(primary_key=True, serialize=False)),
            ],
            options={'verbose_name_plural': 'unlinked entries', 'default_permissions': ()},
        ),
        migrations.RunSQL(
            QUEUE, reverse_sql="DROP TRIGGER audit_queue ON moderation_auditentry; DROP FUNCTION queue_audit_entries"
        ),
        migrations.RunSQL(QUEUE_EXISTING, reverse_sql=migrations.RunSQL.noop),
    ]
