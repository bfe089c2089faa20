"""Entries of the audit log cannot be changed: by a trigger for everyone, by grants for the application's role."""

from django.db import migrations

# chatstore.audit_retention allows a transaction of the tables' owner to delete what is older than the retention
# period; the application's role has no right to delete, so that the setting is of no use to it. Nothing allows UPDATE.
REFUSE = """
CREATE FUNCTION refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'UPDATE' AND current_setting('chatstore.audit_retention', true) = 'on' THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION 'permission denied: % is append-only, % is refused', TG_TABLE_NAME, TG_OP
        USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER audit_is_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON moderation_auditentry
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change();
"""

# Whatever the roles are called: every grantee but the owner keeps SELECT and INSERT only. To be called again after
# each GRANT ... ON ALL TABLES, by the owner. Tables that a later migration creates are protected once it calls this.
PROTECT = """
CREATE FUNCTION protect_audit_log() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    granted record;
BEGIN
    FOR granted IN
        SELECT relation.oid::regclass AS name, acl.grantee, acl.privilege_type
        FROM pg_class relation CROSS JOIN LATERAL aclexplode(relation.relacl) acl
        WHERE relation.oid IN (to_regclass('moderation_auditentry'), to_regclass('moderation_auditlink'))
            AND acl.grantee <> relation.relowner AND acl.privilege_type NOT IN ('SELECT', 'INSERT')
    LOOP
        EXECUTE format(
            'REVOKE %s ON %s FROM %s', granted.privilege_type, granted.name,
            CASE granted.grantee WHEN 0 THEN 'PUBLIC' ELSE granted.grantee::regrole::text END
        );
    END LOOP;
END $$;
SELECT protect_audit_log();
"""


class Migration(migrations.Migration):

    dependencies = [
        ('moderation', '0023_audit_columns'),
    ]

    operations = [
        migrations.RunSQL(
            REFUSE, reverse_sql="DROP TRIGGER audit_is_append_only ON moderation_auditentry; DROP FUNCTION refuse_audit_change"
        ),
        migrations.RunSQL(PROTECT, reverse_sql="DROP FUNCTION protect_audit_log"),
    ]
