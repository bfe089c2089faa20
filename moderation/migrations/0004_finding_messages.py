"""A message is found among the frozen ids by its id alone, an author among the manifests."""

import django.contrib.postgres.indexes
from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from zstandard import ZstdError

from moderation.domain.packing import unpack_ids
from moderation.domain.sketches import sketch_ids


def note_ids(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Notes of the steps that there are what a new one is made with."""
    steps = apps.get_model("moderation", "Step").objects.filter(kind__in=("rows", "spans", "later"), first_id=None)
    for purge_id, ordinal, packed in steps.values_list("purge_id", "ordinal", "ids").iterator(chunk_size=50):
        try:
            ids = unpack_ids(packed)
        except (ValueError, ZstdError):
            # Nothing can be found in it; its page says what became of it.
            continue
        if ids:
            steps.filter(purge_id=purge_id, ordinal=ordinal).update(
                first_id=ids[0], last_id=ids[-1], sketch=sketch_ids(ids)
            )


class Migration(migrations.Migration):

    dependencies = [
        ('moderation', '0003_undo_rewrite_pause'),
    ]

    operations = [
        migrations.AddField(
            model_name='step',
            name='first_id',
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name='step',
            name='last_id',
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name='step',
            name='sketch',
            field=models.BinaryField(null=True),
        ),
        migrations.RunPython(note_ids, migrations.RunPython.noop, elidable=True),
        migrations.AddIndex(
            model_name='manifestbucket',
            index=django.contrib.postgres.indexes.GinIndex(fields=['authors'], name='manifest_by_author'),
        ),
        migrations.AddIndex(
            model_name='step',
            index=models.Index(fields=['bucket', 'first_id', 'last_id'], name='step_by_ids'),
        ),
    ]
