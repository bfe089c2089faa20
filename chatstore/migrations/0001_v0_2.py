"""The tables of version 0.2, the first that was published. Those in Cassandra are made by sync_cassandra."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='AuthorBucketRow',
            fields=[
            ],
            options={
                'managed': False,
            },
        ),
        migrations.CreateModel(
            name='BucketFigureRow',
            fields=[
            ],
            options={
                'managed': False,
            },
        ),
        migrations.CreateModel(
            name='BucketLedgerRow',
            fields=[
            ],
            options={
                'managed': False,
            },
        ),
        migrations.CreateModel(
            name='MessageRow',
            fields=[
            ],
            options={
                'managed': False,
            },
        ),
        migrations.CreateModel(
            name='PinRow',
            fields=[
            ],
            options={
                'managed': False,
            },
        ),
        migrations.CreateModel(
            name='QuarantineRow',
            fields=[
            ],
            options={
                'managed': False,
            },
        ),
        migrations.CreateModel(
            name='WithdrawnRow',
            fields=[
            ],
            options={
                'managed': False,
            },
        ),
        migrations.CreateModel(
            name='BucketStamp',
            fields=[
                ('pk', models.CompositePrimaryKey('channel_id', 'bucket', blank=True, editable=False, primary_key=True, serialize=False)),
                ('channel_id', models.BigIntegerField()),
                ('bucket', models.IntegerField()),
                ('stamp', models.BigIntegerField()),
            ],
            options={
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='ChannelLock',
            fields=[
                ('channel_id', models.BigIntegerField(primary_key=True, serialize=False)),
                ('job', models.CharField(max_length=60)),
                ('since', models.DateTimeField()),
                ('lease_until', models.DateTimeField(null=True)),
            ],
            options={
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='ChatUser',
            fields=[
                ('id', models.BigIntegerField(primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=100)),
                ('display_name', models.CharField(blank=True, max_length=100)),
                ('is_bot', models.BooleanField(default=False)),
            ],
            options={
                'verbose_name': 'chat user',
                'ordering': ('name', 'id'),
            },
        ),
        migrations.CreateModel(
            name='Guild',
            fields=[
                ('id', models.BigIntegerField(primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=200)),
            ],
            options={
                'ordering': ('name', 'id'),
            },
        ),
        migrations.CreateModel(
            name='WorkerLease',
            fields=[
                ('worker', models.SmallIntegerField(primary_key=True, serialize=False)),
                ('token', models.UUIDField()),
                ('lease_until', models.DateTimeField()),
            ],
            options={
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='BucketDeletes',
            fields=[
                ('pk', models.CompositePrimaryKey('channel_id', 'bucket', 'hour', blank=True, editable=False, primary_key=True, serialize=False)),
                ('channel_id', models.BigIntegerField()),
                ('bucket', models.IntegerField()),
                ('hour', models.DateTimeField()),
                ('deletes', models.BigIntegerField()),
                ('last_at', models.DateTimeField()),
                ('is_reconciled', models.BooleanField(default=False)),
            ],
            options={
                'default_permissions': (),
                'indexes': [models.Index(condition=models.Q(('is_reconciled', False)), fields=['last_at'], name='deletes_to_reconcile'), models.Index(fields=['last_at'], name='deletes_by_time')],
            },
        ),
        migrations.CreateModel(
            name='ChannelDay',
            fields=[
                ('pk', models.CompositePrimaryKey('channel_id', 'day', blank=True, editable=False, primary_key=True, serialize=False)),
                ('channel_id', models.BigIntegerField()),
                ('day', models.DateField()),
                ('tombstones', models.BigIntegerField(null=True)),
                ('bytes', models.BigIntegerField(null=True)),
                ('read_ms', models.FloatField(null=True)),
                ('live_rows', models.BigIntegerField(null=True)),
            ],
            options={
                'default_permissions': (),
                'indexes': [models.Index(fields=['day'], name='channel_days_by_day')],
            },
        ),
        migrations.CreateModel(
            name='Finding',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(max_length=40)),
                ('subject', models.CharField(blank=True, max_length=100)),
                ('severity', models.IntegerField(choices=[(1, 'amber'), (2, 'red')])),
                ('summary', models.TextField()),
                ('details', models.JSONField(default=dict)),
                ('opened_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('seen_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('closed_at', models.DateTimeField(null=True)),
                ('notified_at', models.DateTimeField(null=True)),
                ('mailed_at', models.DateTimeField(null=True)),
            ],
            options={
                'ordering': ('-severity', '-opened_at'),
                'default_permissions': ('view',),
                'constraints': [models.UniqueConstraint(condition=models.Q(('closed_at', None)), fields=('kind', 'subject'), name='one_open_finding')],
            },
        ),
        migrations.CreateModel(
            name='Channel',
            fields=[
                ('id', models.BigIntegerField(primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('text', 'text channel'), ('voice', 'voice channel'), ('news', 'announcements'), ('thread', 'thread'), ('forum', 'forum'), ('direct', 'direct message')], default='text', max_length=10)),
                ('name', models.CharField(max_length=200)),
                ('category', models.CharField(blank=True, max_length=200)),
                ('topic', models.TextField(blank=True)),
                ('guild', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='channels', to='chatstore.guild')),
            ],
            options={
                'ordering': ('name', 'id'),
            },
        ),
        migrations.CreateModel(
            name='JobSchedule',
            fields=[
                ('job', models.SlugField(max_length=40, primary_key=True, serialize=False)),
                ('cron', models.CharField(max_length=100)),
                ('zone', models.CharField(max_length=60)),
                ('opens', models.TimeField(blank=True, null=True)),
                ('closes', models.TimeField(blank=True, null=True)),
                ('is_enabled', models.BooleanField(default=True)),
                ('changed_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('changed_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'default_permissions': ('view', 'change'),
            },
        ),
        migrations.CreateModel(
            name='JobRun',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('job', models.SlugField(max_length=40)),
                ('slot', models.CharField(max_length=16, null=True)),
                ('subject', models.CharField(blank=True, max_length=60)),
                ('state', models.CharField(choices=[('queued', 'queued'), ('running', 'running'), ('done', 'done'), ('failed', 'failed'), ('skipped', 'skipped'), ('stopped', 'stopped')], default='queued', max_length=10)),
                ('due_at', models.DateTimeField()),
                ('token', models.UUIDField(null=True)),
                ('lease_until', models.DateTimeField(null=True)),
                ('attempts', models.IntegerField(default=0)),
                ('started_at', models.DateTimeField(null=True)),
                ('ended_at', models.DateTimeField(null=True)),
                ('progress', models.JSONField(default=dict)),
                ('result', models.JSONField(default=dict)),
                ('error', models.TextField(blank=True)),
                ('requested_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('retry_of', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='again', to='chatstore.jobrun')),
                ('stop_requested_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ('-due_at', '-id'),
                'default_permissions': ('add', 'view'),
                'indexes': [models.Index(fields=['job', '-due_at'], name='run_by_job'), models.Index(fields=['state', 'due_at'], name='run_by_state')],
                'constraints': [models.UniqueConstraint(fields=('job', 'slot'), name='one_run_a_slot')],
            },
        ),
    ]
