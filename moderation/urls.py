"""URLs of the moderators' pages."""

from django.urls import URLPattern, path, register_converter

from moderation.forms import BucketConverter, SnowflakeConverter
from moderation.views import (
    channel_health,
    chat_user,
    cluster_health,
    compose,
    erasing,
    findings,
    holds,
    home,
    maintenance,
    manifest,
    message,
    metrics,
    preferences,
    purges,
    session,
    timeline,
)

register_converter(SnowflakeConverter, "snowflake")
register_converter(BucketConverter, "bucket")

urlpatterns: list[URLPattern] = [
    path("", home.home, name="home"),
    path("sign-in/", session.sign_in, name="sign_in"),
    path("sign-out/", session.sign_out, name="sign_out"),
    path("preferences/", preferences.preferences, name="preferences"),
    path("find/", home.find, name="find"),
    path("channels/<snowflake:channel_id>/", timeline.timeline, name="timeline"),
    path("channels/<snowflake:channel_id>/rows/", timeline.timeline_rows, name="timeline_rows"),
    path("channels/<snowflake:channel_id>/delete/", compose.compose, name="compose"),
    path("channels/<snowflake:channel_id>/health/", channel_health.channel_health, name="channel_health"),
    path("channels/<snowflake:channel_id>/health/probe/", channel_health.channel_probe, name="channel_probe"),
    path("channels/<snowflake:channel_id>/health/<bucket:bucket>/", channel_health.bucket_health, name="bucket_health"),
    path(
        "channels/<snowflake:channel_id>/health/<bucket:bucket>/live/", channel_health.bucket_live, name="bucket_live"
    ),
    path(
        "channels/<snowflake:channel_id>/health/<bucket:bucket>/<slug:action>/",
        channel_health.bucket_action,
        name="bucket_action",
    ),
    path("delete/", compose.compose_everywhere, name="compose_everywhere"),
    path("delete/summary/", compose.compose_summary, name="compose_summary"),
    path("channels/<snowflake:channel_id>/<snowflake:message_id>/", message.message, name="message"),
    path("channels/<snowflake:channel_id>/<snowflake:message_id>/undo/", message.message_undo, name="message_undo"),
    path("messages/<snowflake:message_id>/", message.message_anywhere, name="message_anywhere"),
    path("users/<snowflake:user_id>/", chat_user.chat_user, name="user"),
    path("purges/", purges.purges, name="purges"),
    path("purges/<snowflake:purge_id>/", purges.purge, name="purge"),
    path("purges/<snowflake:purge_id>/live/", purges.purge_live, name="purge_live"),
    path("purges/<snowflake:purge_id>/messages/", manifest.purge_messages, name="purge_messages"),
    path("purges/<snowflake:purge_id>/discard/", purges.purge_discard, name="purge_discard"),
    path("purges/<snowflake:purge_id>/exclude/", purges.purge_exclude, name="purge_exclude"),
    path("purges/<snowflake:purge_id>/include/", purges.purge_include, name="purge_include"),
    path("purges/<snowflake:purge_id>/confirm/", purges.purge_confirm, name="purge_confirm"),
    path("purges/<snowflake:purge_id>/undo/", purges.purge_undo, name="purge_undo"),
    path("purges/<snowflake:purge_id>/erase/", erasing.purge_erase, name="purge_erase"),
    path("purges/<snowflake:purge_id>/erase/approve/", erasing.purge_erase_approve, name="purge_erase_approve"),
    path("purges/<snowflake:purge_id>/erase/reject/", erasing.purge_erase_reject, name="purge_erase_reject"),
    path("purges/<snowflake:purge_id>/<slug:action>/", purges.purge_control, name="purge_control"),
    path("holds/", holds.holds, name="holds"),
    path("holds/<snowflake:hold_id>/lift/", holds.hold_lift, name="hold_lift"),
    path("health/", cluster_health.cluster_health, name="cluster_health"),
    path("health/live/", cluster_health.cluster_live, name="cluster_live"),
    path("health/<slug:action>/", cluster_health.cluster_action, name="cluster_action"),
    path("findings/<int:finding_id>/acknowledge/", findings.finding_acknowledge, name="finding_acknowledge"),
    path("maintenance/", maintenance.maintenance, name="maintenance"),
    path("maintenance/live/", maintenance.maintenance_live, name="maintenance_live"),
    path("maintenance/runs/", maintenance.runs, name="runs"),
    path("maintenance/runs/<int:run_id>/", maintenance.run, name="run"),
    path("maintenance/runs/<int:run_id>/live/", maintenance.run_live, name="run_live"),
    path("maintenance/runs/<int:run_id>/stop/", maintenance.run_stop, name="run_stop"),
    path("maintenance/runs/<int:run_id>/again/", maintenance.run_again, name="run_again"),
    path("maintenance/jobs/<slug:name>/", maintenance.job, name="job"),
    path("maintenance/jobs/<slug:name>/preview/", maintenance.job_preview, name="job_preview"),
    path("maintenance/jobs/<slug:name>/run/", maintenance.job_run, name="job_run"),
    path("metrics", metrics.metrics, name="metrics"),
]
