"""Accounts get the roles of their groups, and purges the guilds and channels of their manifests.

An account gets every role whose rights it had, for the whole installation, so that no account gains a right. Rights that
its roles do not include are printed. Channels without a guild have a role of their
own, which all of them get that could read channels. Groups and single permissions are left as they are, without effect.
"""

import sys

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

IMPLIED = {"moderator": {"lead", "admin"}, "lead": {"admin"}, "operator": {"admin"}, "auditor": {"lead", "admin"}}
AUDITOR = {"view_channel", "view_guild", "view_purge", "view_chatuser", "view_auditentry", "view_hold", "view_note"}
AUDITOR |= {"view_reportcase"}
READ = {"view_channel", "view_guild", "view_purge"}
MODERATE = READ | {"view_chatuser", "add_purge", "view_hold", "add_hold", "view_note", "add_note"}
MODERATE |= {"view_reportcase", "change_reportcase"}
LEAD = MODERATE | {"change_hold", "erase_purge", "view_auditentry", "add_raidsettings", "change_raidsettings"}
OPERATE = READ | {"view_finding", "add_jobrun", "change_jobschedule"}
ADMINISTER = {"add_user", "change_user", "add_guild", "change_guild", "add_channel", "change_channel"}
MORE = {"view_raidsettings", "view_user", "add_chatuser", "change_chatuser", "view_jobrun", "view_jobschedule"}
EVERY = {
    "moderator": MODERATE,
    "lead": LEAD | {"view_raidsettings"},
    "operator": OPERATE | {"view_jobrun", "view_jobschedule"},
    "admin": LEAD | OPERATE | ADMINISTER | MORE,
}
NEEDED = {"moderator": MODERATE, "lead": LEAD, "operator": OPERATE, "admin": LEAD | OPERATE | ADMINISTER}

FILL_REACH = """
UPDATE moderation_purge AS purge SET guild_ids = found.guild_ids,
    channel_ids = CASE WHEN found.channels <= 200 THEN found.channel_ids END
FROM (
    SELECT manifest.purge_id, array_agg(DISTINCT coalesce(channel.guild_id, 0)) AS guild_ids,
        count(DISTINCT manifest.channel_id) AS channels, array_agg(DISTINCT manifest.channel_id) AS channel_ids
    FROM moderation_manifestbucket AS manifest
    LEFT JOIN chatstore_channel AS channel ON channel.id = manifest.channel_id
    GROUP BY manifest.purge_id
) AS found WHERE found.purge_id = purge.id;
UPDATE moderation_purge SET guild_ids = ARRAY[guild_id] WHERE guild_ids IS NULL AND guild_id <> 0;
"""


def give_roles(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Give each account the roles of its groups and single permissions."""
    groups = apps.get_model("auth", "Group").objects.prefetch_related("permissions")
    rights = {group.pk: {right.codename for right in group.permissions.all()} for group in groups}
    given = apps.get_model("chatstore", "RoleGrant")
    accounts = apps.get_model("auth", "User").objects.filter(is_superuser=False)
    for account in accounts.prefetch_related("groups", "user_permissions").order_by("pk"):
        own = [group.pk for group in account.groups.all()]
        held = {right.codename for right in account.user_permissions.all()}.union(*(rights[pk] for pk in own))
        roles = {role for role, needed in NEEDED.items() if needed <= held}
        if held >= AUDITOR:
            roles.add("auditor")
        roles = {role for role in roles if not IMPLIED.get(role, set()) & roles}
        if roles and "admin" not in roles:
            roles.add("direct")
        # An account that has a role already keeps it.
        given.objects.bulk_create([given(account=account, role=role) for role in sorted(roles)], ignore_conflicts=True)
        left = held.difference(*(EVERY.get(role, AUDITOR) for role in roles - {"direct"}))
        if left:
            names_left = ", ".join(sorted(left))
            sys.stderr.write(f"\n  {account.username} had rights that none of its roles has: {names_left}")


class Migration(migrations.Migration):

    dependencies = [
        ('chatstore', '0008_role_grants'),
        ('moderation', '0027_purge_reach'),
    ]

    operations = [
        migrations.RunPython(give_roles, migrations.RunPython.noop),
        migrations.RunSQL(FILL_REACH, reverse_sql=migrations.RunSQL.noop),
    ]
