"""Rights on single columns of the audit log are taken too."""

from django.db import migrations

# As in 0024, and the rights on columns besides those on tables.
PROTECT = """
CREATE OR REPLACE FUNCTION protect_audit_log() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    granted record;
BEGIN
    FOR granted IN
        WITH log AS (
            SELECT * FROM pg_class WHERE oid IN (to_regclass('moderation_auditentry'), to_regclass('moderation_auditlink'))
        ), given AS (
            SELECT log.oid::regclass AS name, log.relowner, acl.grantee, acl.privilege_type, '' AS columns
            FROM log CROSS JOIN LATERAL aclexplode(log.relacl) acl
            UNION ALL
            SELECT log.oid::regclass, log.relowner, acl.grantee, acl.privilege_type, format(' (%I)', attribute.attname)
            FROM log JOIN pg_attribute attribute ON attrelid = log.oid
                CROSS JOIN LATERAL aclexplode(attribute.attacl) acl
        )
        SELECT * FROM given WHERE grantee <> relowner AND privilege_type NOT IN ('SELECT', 'INSERT')
    LOOP
        EXECUTE format(
            'REVOKE %s%s ON %s FROM %s', granted.privilege_type, granted.columns, granted.name,
            CASE granted.grantee WHEN 0 THEN 'PUBLIC' ELSE granted.grantee::regrole::text END
        );
    END LOOP;
END $$;
SELECT protect_audit_log();
"""


class Migration(migrations.Migration):

    dependencies = [
        ('moderation', '0039_raid_setting_labels'),
    ]

    operations = [
        migrations.RunSQL(PROTECT, reverse_sql=migrations.RunSQL.noop),
    ]
