
import django.db.models.deletion
import django.db.models.functions.datetime
import moderation.domain.states
import moderation.models.ids
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('moderation', '0002_groups'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveField(
            model_name='manifestbucket',
            name='refused',
        ),
        migrations.AddField(
            model_name='purge',
            name='is_rewrite',
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name='step',
            name='already_live',
            field=models.IntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='step',
            name='asked',
            field=models.IntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='step',
            name='nowhere_kept',
            field=models.IntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='step',
            name='restored',
            field=models.IntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='step',
            name='still_purged',
            field=models.IntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='step',
            name='takes_back',
            field=models.IntegerField(null=True),
        ),
        migrations.AddField(
            model_name='step',
            name='undone_ids',
            field=models.BinaryField(null=True),
        ),
        migrations.AddField(
            model_name='step',
            name='withdrawn',
            field=models.IntegerField(db_default=0, default=0),
        ),
        migrations.AlterField(
            model_name='purge',
            name='state',
            field=models.CharField(choices=[('draft', 'draft'), ('scanning', 'scanning'), ('ready', 'ready'), ('nothing_matched', 'nothing matched'), ('expired', 'expired'), ('queued', 'queued'), ('running', 'running'), ('waiting', 'waiting'), ('paused', 'paused'), ('cancelling', 'cancelling'), ('cancelled', 'cancelled'), ('done', 'done'), ('done_with_failures', 'done with failures'), ('undoing', 'undoing'), ('undone', 'undone'), ('partly_undone', 'partly undone')], default=moderation.domain.states.PurgeState['DRAFT'], max_length=20),
        ),
        migrations.AlterField(
            model_name='step',
            name='kind',
            field=models.CharField(choices=[('rows', 'rows'), ('spans', 'spans'), ('later', 'later'), ('rewrite', 'rewrite'), ('undo', 'undo')], max_length=10),
        ),
        migrations.CreateModel(
            name='Undo',
            fields=[
                ('id', models.BigIntegerField(db_default=moderation.models.ids.NextId(), primary_key=True, serialize=False)),
                ('asked_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('finished_at', models.DateTimeField(null=True)),
                ('part', models.JSONField()),
                ('moderator', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('purge', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='undos', to='moderation.purge')),
            ],
            options={
                'default_permissions': (),
            },
        ),
        migrations.AddField(
            model_name='step',
            name='undo',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='steps', to='moderation.undo'),
        ),
    ]
