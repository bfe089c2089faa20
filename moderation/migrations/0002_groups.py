"""The groups moderators, operators and admins, with their rights."""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

READERS = ["chatstore.view_channel", "chatstore.view_guild", "moderation.view_purge"]
MODERATORS = [*READERS, "chatstore.view_chatuser", "moderation.add_purge"]
ADMINS = [
    *MODERATORS,
    "moderation.view_auditentry",
    *(f"chatstore.{act}_{model}" for act in ("add", "change") for model in ("guild", "channel", "chatuser")),
]
GROUPS = {"moderators": MODERATORS, "operators": READERS, "admins": ADMINS}


def make_groups(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Permissions are made here by hand: Django makes its own only after all migrations."""
    content_types = apps.get_model("contenttypes", "ContentType")
    permissions = apps.get_model("auth", "Permission")
    for name, rights in GROUPS.items():
        group, _ = apps.get_model("auth", "Group").objects.get_or_create(name=name)
        for right in rights:
            app, codename = right.split(".")
            act, model = codename.split("_")
            kind, _ = content_types.objects.get_or_create(app_label=app, model=model)
            permission, _ = permissions.objects.get_or_create(
                content_type=kind, codename=codename, defaults={"name": f"Can {act} {model}"}
            )
            group.permissions.add(permission)


class Migration(migrations.Migration):
    dependencies = [
        ("moderation", "0001_initial"),
        ("chatstore", "0001_initial"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]
    operations = [migrations.RunPython(make_groups, migrations.RunPython.noop)]
