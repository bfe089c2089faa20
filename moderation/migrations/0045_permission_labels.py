"""Name of the permission for permanent deletion. Changes no table."""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

OLD, NEW = "Can erase the copies of a purge", "Can permanently delete the copies of a purge"


def rename(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Rename the permission, which Django creates but never renames."""
    apps.get_model("auth", "Permission").objects.filter(codename="erase_purge", name=OLD).update(name=NEW)


def rename_back(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Give the permission its old name."""
    apps.get_model("auth", "Permission").objects.filter(codename="erase_purge", name=NEW).update(name=OLD)


class Migration(migrations.Migration):

    dependencies = [
        ('moderation', '0044_purges_by_end'),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='erasure',
            options={'default_permissions': (), 'ordering': ('-id',), 'permissions': (('erase_purge', 'Can permanently delete the copies of a purge'),)},
        ),
        migrations.RunPython(rename, rename_back),
    ]
