"""Operators and admins read health, start maintenance and say when it runs."""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

RIGHTS = ["view_finding", "view_jobrun", "add_jobrun", "view_jobschedule", "change_jobschedule"]


def give_rights(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Permissions are made here by hand: Django makes its own only after all migrations."""
    content_types = apps.get_model("contenttypes", "ContentType")
    permissions = apps.get_model("auth", "Permission")
    for name in ("operators", "admins"):
        group, _ = apps.get_model("auth", "Group").objects.get_or_create(name=name)
        for codename in RIGHTS:
            act, model = codename.split("_")
            kind, _ = content_types.objects.get_or_create(app_label="chatstore", model=model)
            permission, _ = permissions.objects.get_or_create(
                content_type=kind, codename=codename, defaults={"name": f"Can {act} {model}"}
            )
            group.permissions.add(permission)


class Migration(migrations.Migration):
    dependencies = [("moderation", "0005_ids_in_order"), ("chatstore", "0003_deletes_and_days")]
    operations = [migrations.RunPython(give_rights, migrations.RunPython.noop)]
