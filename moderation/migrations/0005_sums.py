"""Sums of counted steps and of manifests, which pages and checks read instead of 50,000 rows."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('moderation', '0004_scale'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='ManifestSummary',
            fields=[
                ('purge', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='summary', serialize=False, to='moderation.purge')),
                ('data', models.JSONField()),
            ],
            options={
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='PurgeDay',
            fields=[
                ('pk', models.CompositePrimaryKey('purge_id', 'day', blank=True, editable=False, primary_key=True, serialize=False)),
                ('purge', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='days', to='moderation.purge')),
                ('day', models.DateField()),
                ('deleted', models.BigIntegerField()),
                ('last_at', models.DateTimeField()),
            ],
            options={
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='PurgePeriod',
            fields=[
                ('pk', models.CompositePrimaryKey('purge_id', 'bucket', blank=True, editable=False, primary_key=True, serialize=False)),
                ('purge', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='periods', to='moderation.purge')),
                ('bucket', models.IntegerField()),
                ('deleted', models.BigIntegerField(db_default=0, default=0)),
                ('already_gone', models.BigIntegerField(db_default=0, default=0)),
                ('undone', models.BigIntegerField(db_default=0, default=0)),
            ],
            options={
                'default_permissions': (),
            },
        ),
        migrations.AddField(
            model_name='purge',
            name='quarantined_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name='undo',
            name='already_live',
            field=models.BigIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='undo',
            name='expected',
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name='undo',
            name='failed',
            field=models.BigIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='undo',
            name='no_copy',
            field=models.BigIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='undo',
            name='requested',
            field=models.BigIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='undo',
            name='restored',
            field=models.BigIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='undo',
            name='still_purged',
            field=models.BigIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='undo',
            name='withdrawn',
            field=models.BigIntegerField(db_default=0, default=0),
        ),
        migrations.AddIndex(
            model_name='purge',
            index=models.Index(condition=models.Q(('is_rewrite', False), ('state__in', ('cancelled', 'done', 'done_with_failures', 'partly_undone'))), fields=['quarantined_at'], name='purge_that_expires'),
        ),
        migrations.AddIndex(
            model_name='step',
            index=models.Index(condition=models.Q(('held__gt', 0)), fields=['purge_id', 'bucket'], include=('held',), name='step_held'),
        ),
        migrations.AddIndex(
            model_name='step',
            index=models.Index(condition=models.Q(('failed__gt', 0)), fields=['purge_id', 'channel_id', 'bucket'], name='step_failed'),
        ),
        migrations.AddIndex(
            model_name='step',
            index=models.Index(condition=models.Q(('kind', 'later'), models.Q(('state__in', ('counted', 'held', 'cancelled', 'failed')), _negated=True)), fields=['purge_id'], include=('count',), name='step_deferred'),
        ),
        migrations.AddIndex(
            model_name='undostep',
            index=models.Index(condition=models.Q(('failed__gt', 0)), fields=['purge_id', 'channel_id', 'bucket'], name='undostep_failed'),
        ),
        migrations.AddIndex(
            model_name='purgeday',
            index=models.Index(fields=['day'], include=('deleted', 'last_at'), name='purge_days_by_day'),
        ),
    ]
