"""Accounts get the roles of their groups, and purges the guilds and channels of their manifests.

Nobody loses rights: an account of one of the four groups gets the role of that name for the whole installation, and one
with other groups or single permissions every role whose rights it had. Channels without a guild have a role of their
own, which all of them get that could read channels. Groups and single permissions are left as they are, without effect.
"""

import sys

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

ROLES = {"moderators": "moderator", "leads": "lead", "operators": "operator", "admins": "admin"}
IMPLIED = {"moderator": {"lead", "admin"}, "lead": {"admin"}, "operator": {"admin"}, "auditor": {"lead", "admin"}}
AUDITOR = {"view_channel", "view_guild", "view_purge", "view_chatuser", "view_auditentry", "view_hold", "view_note"}
AUDITOR |= {"view_reportcase"}

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
    names = {group.pk: group.name for group in groups}
    by_role = {ROLES[names[pk]]: held for pk, held in rights.items() if names[pk] in ROLES and held}
    given = apps.get_model("chatstore", "RoleGrant")
    accounts = apps.get_model("auth", "User").objects.filter(is_superuser=False)
    for account in accounts.prefetch_related("groups", "user_permissions").order_by("pk"):
        own = [group.pk for group in account.groups.all()]
        held = {right.codename for right in account.user_permissions.all()}.union(*(rights[pk] for pk in own))
        roles = {ROLES[names[pk]] for pk in own if names[pk] in ROLES}
        roles |= {role for role, needed in by_role.items() if needed <= held}
        if held >= AUDITOR:
            roles.add("auditor")
        roles = {role for role in roles if not IMPLIED.get(role, set()) & roles}
        if roles and "admin" not in roles:
            roles.add("direct")
        # An account that has a role already keeps it.
        given.objects.bulk_create([given(account=account, role=role) for role in sorted(roles)], ignore_conflicts=True)
        left = held.difference(*(by_role.get(role, AUDITOR) for role in roles - {"direct"}))
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
