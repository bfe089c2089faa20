import moderation.domain.states
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('moderation', '0006_maintenance_rights'),
    ]

    operations = [
        migrations.AlterField(
            model_name='purge',
            name='state',
            field=models.CharField(choices=[('draft', 'draft'), ('scanning', 'scanning'), ('ready', 'ready'), ('nothing_matched', 'nothing matched'), ('expired', 'expired'), ('queued', 'queued'), ('running', 'running'), ('waiting', 'waiting'), ('paused', 'paused'), ('cancelling', 'cancelling'), ('cancelled', 'cancelled'), ('done', 'done'), ('done_with_failures', 'done with failures'), ('undoing', 'undoing'), ('undone', 'undone'), ('partly_undone', 'partly undone'), ('undo_expired', 'undo expired')], default=moderation.domain.states.PurgeState['DRAFT'], max_length=20),
        ),
    ]
