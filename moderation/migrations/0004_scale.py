"""Indexes with which the queries of pages and background work stay fast over a year's rows."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('moderation', '0003_turns'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name='hold',
            name='hold_in_force',
        ),
        migrations.RemoveIndex(
            model_name='purge',
            name='purge_by_state',
        ),
        migrations.RemoveIndex(
            model_name='step',
            name='step_by_state',
        ),
        migrations.RemoveIndex(
            model_name='undostep',
            name='undostep_by_state',
        ),
        migrations.AlterField(
            model_name='auditentry',
            name='actor',
            field=models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AlterField(
            model_name='auditentry',
            name='purge',
            field=models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='audit', to='moderation.purge'),
        ),
        migrations.AlterField(
            model_name='manifestbucket',
            name='purge',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='manifest_buckets', to='moderation.purge'),
        ),
        migrations.AlterField(
            model_name='step',
            name='purge',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='steps', to='moderation.purge'),
        ),
        migrations.AlterField(
            model_name='undostep',
            name='undo',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='steps', to='moderation.undo'),
        ),
        migrations.AddIndex(
            model_name='auditentry',
            index=models.Index(fields=['action', 'id'], name='audit_by_action'),
        ),
        migrations.AddIndex(
            model_name='auditentry',
            index=models.Index(condition=models.Q(('purge__isnull', False)), fields=['purge', 'id'], name='audit_by_purge'),
        ),
        migrations.AddIndex(
            model_name='auditentry',
            index=models.Index(condition=models.Q(('actor__isnull', False)), fields=['actor', 'id'], name='audit_by_actor'),
        ),
        migrations.AddIndex(
            model_name='auditentry',
            index=models.Index(condition=models.Q(('channel_id__isnull', False)), fields=['channel_id', 'id'], name='audit_by_channel'),
        ),
        migrations.AddIndex(
            model_name='hold',
            index=models.Index(fields=['channel_id', 'lifted_at'], name='hold_by_channel'),
        ),
        migrations.AddIndex(
            model_name='hold',
            index=models.Index(fields=['author_id', 'lifted_at'], name='hold_by_author'),
        ),
        migrations.AddIndex(
            model_name='hold',
            index=models.Index(condition=models.Q(('lifted_at', None)), fields=['id'], name='hold_in_force'),
        ),
        migrations.AddIndex(
            model_name='purge',
            index=models.Index(fields=['state', 'is_rewrite'], name='purge_by_state'),
        ),
        migrations.AddIndex(
            model_name='step',
            index=models.Index(models.F('purge_id'), models.OrderBy(models.F('due_at'), nulls_first=True), models.F('ordinal'), condition=models.Q(('state__in', ('counted', 'held', 'cancelled', 'failed')), _negated=True), name='step_open'),
        ),
        migrations.AddIndex(
            model_name='step',
            index=models.Index(condition=models.Q(('state__in', ('counted', 'held', 'cancelled', 'failed')), _negated=True), fields=['channel_id', 'purge_id'], name='step_open_in_channel'),
        ),
        migrations.AddIndex(
            model_name='step',
            index=models.Index(condition=models.Q(('lease_until__isnull', False)), fields=['purge_id', 'lease_until', 'token'], name='step_claimed'),
        ),
        migrations.AddIndex(
            model_name='step',
            index=models.Index(condition=models.Q(('state__in', ('stamped', 'rewritten', 'deleted', 'verified', 'closed'))), fields=['purge_id'], name='step_applied'),
        ),
        migrations.AddIndex(
            model_name='undostep',
            index=models.Index(models.F('purge_id'), models.OrderBy(models.F('due_at'), nulls_first=True), models.F('ordinal'), condition=models.Q(('state__in', ('counted',)), _negated=True), name='undostep_open'),
        ),
        migrations.AddIndex(
            model_name='undostep',
            index=models.Index(condition=models.Q(('state__in', ('counted',)), _negated=True), fields=['channel_id', 'purge_id'], name='undostep_open_in_channel'),
        ),
        migrations.AddIndex(
            model_name='undostep',
            index=models.Index(condition=models.Q(('lease_until__isnull', False)), fields=['purge_id', 'lease_until', 'token'], name='undostep_claimed'),
        ),
        migrations.AddIndex(
            model_name='undostep',
            index=models.Index(condition=models.Q(('state__in', ('stamped', 'restored', 'verified', 'closed'))), fields=['purge_id'], name='undostep_applied'),
        ),
    ]
