"""Admins create staff accounts, give them groups and deactivate them."""

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

RIGHTS = ("add_user", "change_user", "view_user")


def permit_admins(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Give the group the permissions, which Django itself would create only after all migrations."""
    kind, _ = apps.get_model("contenttypes", "ContentType").objects.get_or_create(app_label="auth", model="user")
    group, _ = apps.get_model("auth", "Group").objects.get_or_create(name="admins")
    for right in RIGHTS:
        permission, _ = apps.get_model("auth", "Permission").objects.get_or_create(
            content_type=kind, codename=right, defaults={"name": f"Can {right.replace('_', ' ')}"}
        )
        group.permissions.add(permission)


class Migration(migrations.Migration):
    dependencies = [("moderation", "0011_saved_filters")]

    operations = [migrations.RunPython(permit_admins, migrations.RunPython.noop)]
