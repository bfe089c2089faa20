"""Reports of messages by members, one case for each message."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('chatstore', '0003_channel_summary'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='ReportCase',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('message_id', models.BigIntegerField()),
                ('author_id', models.BigIntegerField(null=True)),
                ('category', models.CharField(choices=[('spam', 'spam'), ('harassment', 'harassment'), ('hate', 'hate'), ('sexual', 'sexual'), ('violence', 'violence'), ('privacy', 'privacy'), ('other', 'other')], max_length=20)),
                ('report_count', models.PositiveIntegerField(default=0)),
                ('opened_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('reported_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('claimed_until', models.DateTimeField(null=True)),
                ('resolved_at', models.DateTimeField(null=True)),
                ('resolution', models.CharField(blank=True, choices=[('removed', 'removed'), ('kept', 'kept'), ('nothing', 'nothing')], default='', max_length=10)),
                ('reason', models.TextField(blank=True, default='')),
                ('purge_id', models.BigIntegerField(null=True)),
                ('channel', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='chatstore.channel')),
                ('claimed_by', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('resolved_by', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ('id',),
                'default_permissions': ('view', 'change'),
            },
        ),
        migrations.CreateModel(
            name='Report',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('reporter_id', models.BigIntegerField()),
                ('category', models.CharField(choices=[('spam', 'spam'), ('harassment', 'harassment'), ('hate', 'hate'), ('sexual', 'sexual'), ('violence', 'violence'), ('privacy', 'privacy'), ('other', 'other')], max_length=20)),
                ('text', models.TextField(blank=True)),
                ('reported_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('case', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='reports', to='chatstore.reportcase')),
            ],
            options={
                'ordering': ('-id',),
                'default_permissions': (),
            },
        ),
        migrations.AddIndex(
            model_name='reportcase',
            index=models.Index(condition=models.Q(('resolved_at', None)), fields=['id'], name='case_open'),
        ),
        migrations.AddIndex(
            model_name='reportcase',
            index=models.Index(condition=models.Q(('resolved_at__isnull', False)), fields=['resolved_at', 'id'], name='case_resolved'),
        ),
        migrations.AddIndex(
            model_name='reportcase',
            index=models.Index(fields=['channel', 'message_id', 'id'], name='case_by_message'),
        ),
        migrations.AddIndex(
            model_name='reportcase',
            index=models.Index(fields=['author_id', 'opened_at'], name='case_by_author'),
        ),
        migrations.AddIndex(
            model_name='reportcase',
            index=models.Index(fields=['author_id', 'resolution'], name='case_by_outcome'),
        ),
        migrations.AddConstraint(
            model_name='reportcase',
            constraint=models.UniqueConstraint(condition=models.Q(('resolved_at', None)), fields=('channel', 'message_id'), name='one_open_case'),
        ),
        migrations.AddIndex(
            model_name='report',
            index=models.Index(fields=['case', 'id'], name='report_by_case'),
        ),
        migrations.AddConstraint(
            model_name='report',
            constraint=models.UniqueConstraint(fields=('case', 'reporter_id'), name='one_report_of_each_member'),
        ),
    ]
