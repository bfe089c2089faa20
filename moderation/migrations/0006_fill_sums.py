"""Sums of the steps that were counted before sums were kept."""

from django.db import migrations

# The first 8 bytes of packed ids are their number, little-endian; a bucket has less than 2³¹ messages.
UNDONE = " + ".join(f"(get_byte(substring(undone_ids, 1, 4), {n})::bigint << {8 * n})" for n in range(4))

FILL = (
    f"""
    INSERT INTO moderation_purgeperiod (purge_id, bucket, deleted, already_gone, undone)
    SELECT purge_id, bucket, sum(deleted), sum(already_gone), coalesce(sum({UNDONE}), 0) FROM moderation_step
    WHERE state = 'counted' AND kind <> 'rewrite' GROUP BY purge_id, bucket
    ON CONFLICT (purge_id, bucket) DO UPDATE
    SET deleted = EXCLUDED.deleted, already_gone = EXCLUDED.already_gone, undone = EXCLUDED.undone
    """,
    """
    INSERT INTO moderation_purgeday (purge_id, day, deleted, last_at)
    SELECT purge_id, (counted_at AT TIME ZONE 'UTC')::date AS day, sum(deleted), max(counted_at) FROM moderation_step
    WHERE state = 'counted' AND kind <> 'rewrite' AND deleted > 0 AND counted_at IS NOT NULL GROUP BY purge_id, day
    ON CONFLICT (purge_id, day) DO UPDATE SET deleted = EXCLUDED.deleted, last_at = EXCLUDED.last_at
    """,
    """
    UPDATE moderation_purge SET quarantined_at = first FROM (
        SELECT purge_id, min(quarantined_at) AS first FROM moderation_step
        WHERE quarantined_at IS NOT NULL GROUP BY purge_id
    ) AS kept WHERE id = purge_id
    """,
    """
    UPDATE moderation_undo AS undo SET requested = sums.requested, restored = sums.restored,
        withdrawn = sums.withdrawn, still_purged = sums.still_purged, already_live = sums.already_live,
        no_copy = sums.no_copy, failed = sums.failed
    FROM (
        SELECT undo_id, sum(requested) AS requested, sum(restored) AS restored, sum(withdrawn) AS withdrawn,
            sum(still_purged) AS still_purged, sum(already_live) AS already_live, sum(no_copy) AS no_copy,
            sum(failed) AS failed
        FROM moderation_undostep WHERE state = 'counted' GROUP BY undo_id
    ) AS sums WHERE undo.id = undo_id
    """,
    # An upper bound if a part of the purge is undone.
    """
    UPDATE moderation_undo AS undo SET expected = undo.requested + coalesce((
        SELECT sum(step.deleted + step.already_gone) FROM moderation_undostep AS left_over
        JOIN moderation_step AS step USING (purge_id, ordinal)
        WHERE left_over.undo_id = undo.id AND left_over.state <> 'counted'
    ), 0) WHERE finished_at IS NULL AND expected IS NULL
    """,
)


class Migration(migrations.Migration):

    dependencies = [('moderation', '0005_sums')]

    operations = [migrations.RunSQL(FILL, migrations.RunSQL.noop)]
