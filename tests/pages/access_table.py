"""Every URL of the project and every command, with what each role gets: `test_access` checks it, other tests use it."""

from __future__ import annotations

ROLES = ("anonymous", "tess", "gus", "mona", "lena", "aron", "otto", "ada")
"""A visitor, staff without a role, a moderator of another guild, a moderator of the guild, and a lead, an auditor, an
operator and an administrator of the whole installation, with direct messages.
"""

# Route, method, URL and the statuses of ROLES. 302 is a redirect: to the sign-in page for anonymous users. Absent and
# forbidden look alike. What is in braces is an object of the guild.
TABLE = """
admin/search/ GET admin/search/ 302 200 200 200 200 200 200 200
admin/ GET admin/ 302 403 403 403 200 200 200 200
admin/login/ GET admin/login/ 302 302 302 302 302 302 302 302
admin/logout/ GET admin/logout/ 302 405 405 405 405 405 405 405
admin/logout/ POST admin/logout/ 302 302 302 302 302 302 302 302
admin/password_change/ GET admin/password_change/ 302 302 302 302 302 302 302 302
admin/password_change/done/ GET admin/password_change/done/ 302 200 200 200 200 200 200 200
admin/autocomplete/ GET admin/autocomplete/ 302 403 403 403 403 403 403 403
admin/jsi18n/ GET admin/jsi18n/ 302 200 200 200 200 200 200 200
admin/r/<path:content_type_id>/<path:object_id>/ GET admin/r/1/1/ 302 404 404 404 404 404 404 404
admin/chatstore/guild/ GET admin/chatstore/guild/ 302 403 403 403 200 200 200 200
admin/chatstore/guild/add/ GET admin/chatstore/guild/add/ 302 403 403 403 403 403 403 200
admin/chatstore/guild/add/ POST admin/chatstore/guild/add/ 302 403 403 403 403 403 403 200
admin/chatstore/guild/<path:object_id>/history/ GET admin/chatstore/guild/{guild}/history/ 302 403 403 403 200 200 200 200
admin/chatstore/guild/<path:object_id>/delete/ GET admin/chatstore/guild/{guild}/delete/ 302 403 403 403 403 403 403 403
admin/chatstore/guild/<path:object_id>/change/ GET admin/chatstore/guild/{guild}/change/ 302 403 403 403 200 200 200 200
admin/chatstore/guild/<path:object_id>/change/ POST admin/chatstore/guild/{guild}/change/ 302 403 403 403 403 403 403 200
admin/chatstore/guild/<path:object_id>/ GET admin/chatstore/guild/{guild}/ 302 302 302 302 302 302 302 302
admin/chatstore/channel/ GET admin/chatstore/channel/ 302 403 403 403 200 200 200 200
admin/chatstore/channel/add/ GET admin/chatstore/channel/add/ 302 403 403 403 403 403 403 200
admin/chatstore/channel/add/ POST admin/chatstore/channel/add/ 302 403 403 403 403 403 403 200
admin/chatstore/channel/<path:object_id>/history/ GET admin/chatstore/channel/{channel}/history/ 302 403 403 403 200 200 200 200
admin/chatstore/channel/<path:object_id>/delete/ GET admin/chatstore/channel/{channel}/delete/ 302 403 403 403 403 403 403 403
admin/chatstore/channel/<path:object_id>/change/ GET admin/chatstore/channel/{channel}/change/ 302 403 403 403 200 200 200 200
admin/chatstore/channel/<path:object_id>/change/ POST admin/chatstore/channel/{channel}/change/ 302 403 403 403 403 403 403 200
admin/chatstore/channel/<path:object_id>/ GET admin/chatstore/channel/{channel}/ 302 302 302 302 302 302 302 302
admin/chatstore/chatuser/ GET admin/chatstore/chatuser/ 302 403 403 403 200 200 403 200
admin/chatstore/chatuser/add/ GET admin/chatstore/chatuser/add/ 302 403 403 403 403 403 403 200
admin/chatstore/chatuser/add/ POST admin/chatstore/chatuser/add/ 302 403 403 403 403 403 403 200
admin/chatstore/chatuser/<path:object_id>/history/ GET admin/chatstore/chatuser/{chatuser}/history/ 302 403 403 403 200 200 403 200
admin/chatstore/chatuser/<path:object_id>/delete/ GET admin/chatstore/chatuser/{chatuser}/delete/ 302 403 403 403 403 403 403 403
admin/chatstore/chatuser/<path:object_id>/change/ GET admin/chatstore/chatuser/{chatuser}/change/ 302 403 403 403 200 200 403 200
admin/chatstore/chatuser/<path:object_id>/change/ POST admin/chatstore/chatuser/{chatuser}/change/ 302 403 403 403 403 403 403 200
admin/chatstore/chatuser/<path:object_id>/ GET admin/chatstore/chatuser/{chatuser}/ 302 302 302 302 302 302 302 302
admin/auth/user/<id>/password/ GET admin/auth/user/{user}/password/ 302 403 403 403 403 403 403 200
admin/auth/user/ GET admin/auth/user/ 302 403 403 403 403 403 403 200
admin/auth/user/add/ GET admin/auth/user/add/ 302 403 403 403 403 403 403 200
admin/auth/user/<path:object_id>/history/ GET admin/auth/user/{user}/history/ 302 403 403 403 403 403 403 200
admin/auth/user/<path:object_id>/delete/ GET admin/auth/user/{user}/delete/ 302 403 403 403 403 403 403 403
admin/auth/user/<path:object_id>/change/ GET admin/auth/user/{user}/change/ 302 403 403 403 403 403 403 200
admin/auth/user/<path:object_id>/ GET admin/auth/user/{user}/ 302 302 302 302 302 302 302 302
admin/moderation/purge/ GET admin/moderation/purge/ 302 403 403 403 200 200 200 200
admin/moderation/purge/add/ GET admin/moderation/purge/add/ 302 403 403 403 403 403 403 403
admin/moderation/purge/add/ POST admin/moderation/purge/add/ 302 403 403 403 403 403 403 403
admin/moderation/purge/<path:object_id>/history/ GET admin/moderation/purge/{purge}/history/ 302 403 403 403 200 200 200 200
admin/moderation/purge/<path:object_id>/delete/ GET admin/moderation/purge/{purge}/delete/ 302 403 403 403 403 403 403 403
admin/moderation/purge/<path:object_id>/delete/ POST admin/moderation/purge/{purge}/delete/ 302 403 403 403 403 403 403 403
admin/moderation/purge/<path:object_id>/change/ GET admin/moderation/purge/{purge}/change/ 302 403 403 403 200 200 200 200
admin/moderation/purge/<path:object_id>/change/ POST admin/moderation/purge/{purge}/change/ 302 403 403 403 403 403 403 403
admin/moderation/purge/<path:object_id>/ GET admin/moderation/purge/{purge}/ 302 302 302 302 302 302 302 302
admin/moderation/raidsettings/ GET admin/moderation/raidsettings/ 302 403 403 403 200 403 403 200
admin/moderation/raidsettings/add/ GET admin/moderation/raidsettings/add/ 302 403 403 403 200 403 403 200
admin/moderation/raidsettings/add/ POST admin/moderation/raidsettings/add/ 302 403 403 403 200 403 403 200
admin/moderation/raidsettings/<path:object_id>/history/ GET admin/moderation/raidsettings/{guild}/history/ 302 403 403 403 302 403 403 302
admin/moderation/raidsettings/<path:object_id>/delete/ GET admin/moderation/raidsettings/{guild}/delete/ 302 403 403 403 403 403 403 403
admin/moderation/raidsettings/<path:object_id>/change/ GET admin/moderation/raidsettings/{guild}/change/ 302 403 403 403 302 403 403 302
admin/moderation/raidsettings/<path:object_id>/ GET admin/moderation/raidsettings/{guild}/ 302 302 302 302 302 302 302 302
admin/moderation/auditentry/ GET admin/moderation/auditentry/ 302 403 403 403 200 200 403 200
admin/moderation/auditentry/add/ GET admin/moderation/auditentry/add/ 302 403 403 403 403 403 403 403
admin/moderation/auditentry/add/ POST admin/moderation/auditentry/add/ 302 403 403 403 403 403 403 403
admin/moderation/auditentry/<path:object_id>/history/ GET admin/moderation/auditentry/{audit}/history/ 302 403 403 403 200 200 403 200
admin/moderation/auditentry/<path:object_id>/delete/ GET admin/moderation/auditentry/{audit}/delete/ 302 403 403 403 403 403 403 403
admin/moderation/auditentry/<path:object_id>/delete/ POST admin/moderation/auditentry/{audit}/delete/ 302 403 403 403 403 403 403 403
admin/moderation/auditentry/<path:object_id>/change/ GET admin/moderation/auditentry/{audit}/change/ 302 403 403 403 200 200 403 200
admin/moderation/auditentry/<path:object_id>/change/ POST admin/moderation/auditentry/{audit}/change/ 302 403 403 403 403 403 403 403
admin/moderation/auditentry/<path:object_id>/ GET admin/moderation/auditentry/{audit}/ 302 302 302 302 302 302 302 302
admin/^(?P<app_label>chatstore|auth|moderation)/$ GET admin/chatstore/ 302 404 404 404 200 200 200 200
admin/(?P<url>.*)$ GET admin/nowhere/ 302 404 404 404 404 404 404 404
- GET - 302 200 200 200 200 200 200 200
sign-in/ GET sign-in/ 200 302 302 302 302 302 302 302
sign-in/ POST sign-in/ 200 302 302 302 302 302 302 302
sign-in/code/ GET sign-in/code/ 302 302 302 302 302 302 302 302
sign-in/code/ POST sign-in/code/ 302 302 302 302 302 302 302 302
sign-in/set-up/ GET sign-in/set-up/ 302 302 302 302 302 302 302 302
sign-in/set-up/ POST sign-in/set-up/ 302 302 302 302 302 302 302 302
sign-in/sso/ GET sign-in/sso/ 404 404 404 404 404 404 404 404
sign-in/sso/callback/ GET sign-in/sso/callback/ 404 404 404 404 404 404 404 404
sign-out/ GET sign-out/ 405 405 405 405 405 405 405 405
sign-out/ POST sign-out/ 302 302 302 302 302 302 302 302
account/ GET account/ 302 200 200 200 200 200 200 200
account/second-factor/ GET account/second-factor/ 302 200 200 200 200 200 200 200
account/second-factor/ POST account/second-factor/ 302 400 400 400 400 400 400 400
account/second-factor/remove/ POST account/second-factor/remove/ 302 400 400 400 400 400 400 400
account/passkeys/add/ GET account/passkeys/add/ 302 302 302 302 302 302 302 302
account/passkeys/add/ POST account/passkeys/add/ 302 302 302 302 302 302 302 302
account/passkeys/<int:passkey_id>/remove/ POST account/passkeys/0/remove/ 302 404 404 404 404 404 404 404
account/recovery-codes/ POST account/recovery-codes/ 302 400 400 400 400 400 400 400
account/password/ GET account/password/ 302 200 200 200 200 200 200 200
account/password/ POST account/password/ 302 400 400 400 400 400 400 400
account/sessions/end/ POST account/sessions/end/ 302 404 404 404 404 404 404 404
account/<int:user_id>/reset-second-factor/ GET account/{user}/reset-second-factor/ 302 403 403 403 403 403 403 200
account/<int:user_id>/reset-second-factor/ POST account/{user}/reset-second-factor/ 302 403 403 403 403 403 403 400
notices/ GET notices/ 302 200 200 200 200 200 200 200
preferences/ GET preferences/ 302 200 200 200 200 200 200 200
preferences/ POST preferences/ 302 400 400 400 400 400 400 400
find/ GET find/?q=no-such-user 302 403 200 200 200 200 200 200
find/suggestions/ GET find/suggestions/?q=no-such-user 302 403 200 200 200 200 200 200
sidebar/ GET sidebar/?channel={channel} 302 403 404 200 200 200 200 200
guilds/<snowflake:guild_id>/ GET guilds/1/ 302 403 404 404 404 404 404 404
guilds/<snowflake:guild_id>/raid-settings/ GET guilds/{guild}/raid-settings/ 302 403 403 403 200 403 403 200
guilds/<snowflake:guild_id>/raid-settings/ POST guilds/{guild}/raid-settings/ 302 403 403 403 400 403 403 400
channels/<snowflake:channel_id>/ GET channels/{channel}/ 302 403 404 200 200 200 200 200
channels/<snowflake:channel_id>/pin/ POST channels/{channel}/pin/ 302 403 404 302 302 302 302 302
channels/<snowflake:channel_id>/rows/ GET channels/{channel}/rows/?before={message} 302 403 404 200 200 200 200 200
channels/<snowflake:channel_id>/new/ GET channels/{channel}/new/?newest={message} 302 403 404 200 200 200 200 200
channels/<snowflake:channel_id>/delete-message/ POST channels/{channel}/delete-message/ 302 403 404 400 400 403 403 400
channels/<snowflake:channel_id>/delete/ GET channels/{channel}/delete/ 302 403 404 200 200 403 403 200
channels/<snowflake:channel_id>/delete/ POST channels/{channel}/delete/ 302 403 404 400 400 403 403 400
channels/<snowflake:channel_id>/health/ GET channels/{channel}/health/ 302 403 403 403 403 403 200 200
channels/<snowflake:channel_id>/health/probe/ POST channels/1/health/probe/ 302 403 403 403 403 403 404 404
channels/<snowflake:channel_id>/health/<bucket:bucket>/ GET channels/{channel}/health/-7/ 302 403 403 403 403 403 200 200
channels/<snowflake:channel_id>/health/<bucket:bucket>/live/ GET channels/{channel}/health/-7/live/ 302 403 403 403 403 403 200 200
channels/<snowflake:channel_id>/health/<bucket:bucket>/<slug:action>/ POST channels/{channel}/health/-7/nothing/ 302 403 403 403 403 403 404 404
delete/ GET delete/ 302 403 200 200 200 403 403 200
delete/ POST delete/ 302 403 400 400 400 403 403 400
delete/filters/<int:filter_id>/delete/ POST delete/filters/0/delete/ 302 403 404 404 404 403 403 404
delete/summary/ POST delete/summary/ 302 403 200 200 200 403 403 200
delete/matches/ POST delete/matches/ 302 403 200 200 200 403 403 200
delete/suggestions/ GET delete/suggestions/?q=vic 302 403 200 200 200 403 403 200
delete/counts/ POST delete/counts/ 302 403 200 200 200 403 403 200
channels/<snowflake:channel_id>/<snowflake:message_id>/ GET channels/{channel}/{message}/ 302 403 404 200 200 200 200 200
channels/<snowflake:channel_id>/<snowflake:message_id>/undo/ GET channels/{channel}/{message}/undo/ 302 403 400 400 400 403 403 400
channels/<snowflake:channel_id>/<snowflake:message_id>/undo/ POST channels/{channel}/{message}/undo/ 302 403 400 400 400 403 403 400
messages/<snowflake:message_id>/ GET messages/1/ 302 403 404 404 404 404 404 404
users/<snowflake:user_id>/ GET users/{chatuser}/ 302 403 200 200 200 200 403 200
users/<snowflake:user_id>/panel/ GET users/{chatuser}/panel/ 302 403 200 200 200 200 403 200
users/<snowflake:user_id>/notes/ POST users/{chatuser}/notes/ 302 403 400 400 400 403 403 400
notes/<snowflake:note_id>/delete/ POST notes/1/delete/ 302 403 404 404 404 403 403 404
purges/ GET purges/ 302 403 200 200 200 200 200 200
purges/<snowflake:purge_id>/ GET purges/{purge}/ 302 403 404 200 200 200 200 200
purges/<snowflake:purge_id>/live/ GET purges/{purge}/live/ 302 403 404 200 200 200 200 200
purges/<snowflake:purge_id>/panel/ GET purges/{purge}/panel/ 302 403 404 200 200 200 200 200
purges/<snowflake:purge_id>/messages/ GET purges/{purge}/messages/ 302 403 404 200 200 200 200 200
purges/<snowflake:purge_id>/evidence.zip GET purges/{purge}/evidence.zip 302 403 403 403 400 400 403 400
purges/<snowflake:purge_id>/discard/ POST purges/1/discard/ 302 403 404 404 404 403 403 404
purges/<snowflake:purge_id>/exclude/ POST purges/{purge}/exclude/ 302 403 404 400 400 403 403 400
purges/<snowflake:purge_id>/include/ POST purges/{purge}/include/ 302 403 404 400 400 403 403 400
purges/<snowflake:purge_id>/narrow/ POST purges/{purge}/narrow/ 302 403 404 400 400 403 403 400
purges/<snowflake:purge_id>/confirm/ POST purges/{purge}/confirm/ 302 403 404 400 400 403 403 400
purges/<snowflake:purge_id>/approval/ POST purges/{purge}/approval/ 302 403 404 400 400 403 403 400
purges/<snowflake:purge_id>/approval/approve/ POST purges/{purge}/approval/approve/ 302 403 403 403 400 403 403 400
purges/<snowflake:purge_id>/approval/reject/ POST purges/{purge}/approval/reject/ 302 403 403 403 400 403 403 400
purges/<snowflake:purge_id>/approval/withdraw/ POST purges/{purge}/approval/withdraw/ 302 403 404 400 400 403 403 400
purges/<snowflake:purge_id>/undo/ GET purges/{purge}/undo/ 302 403 404 400 400 403 403 400
purges/<snowflake:purge_id>/undo/ POST purges/{purge}/undo/ 302 403 404 400 400 403 403 400
purges/<snowflake:purge_id>/erase/ POST purges/{purge}/erase/ 302 403 403 403 400 403 403 400
purges/<snowflake:purge_id>/erase/approve/ POST purges/{purge}/erase/approve/ 302 403 403 403 400 403 403 400
purges/<snowflake:purge_id>/erase/reject/ POST purges/{purge}/erase/reject/ 302 403 403 403 400 403 403 400
purges/<snowflake:purge_id>/<slug:action>/ POST purges/{purge}/pause/ 302 403 404 400 400 403 403 400
purges/<snowflake:purge_id>/<slug:action>/ POST purges/{purge}/resume/ 302 403 404 400 400 403 403 400
purges/<snowflake:purge_id>/<slug:action>/ POST purges/{purge}/cancel/ 302 403 404 400 400 403 403 400
purges/<snowflake:purge_id>/<slug:action>/ POST purges/{purge}/finish/ 302 403 404 400 400 403 403 400
purges/<snowflake:purge_id>/<slug:action>/ POST purges/{purge}/retry/ 302 403 404 400 400 403 403 400
purges/<snowflake:purge_id>/<slug:action>/ POST purges/{purge}/nothing/ 302 403 404 404 404 403 403 404
raids/<snowflake:channel_id>/ GET raids/{channel}/ 302 403 404 200 200 403 403 200
raids/<snowflake:channel_id>/ POST raids/{channel}/ 302 403 404 400 400 403 403 400
raids/<snowflake:channel_id>/dismiss/ POST raids/{channel}/dismiss/ 302 403 404 404 404 403 403 404
audit/ GET audit/ 302 403 403 403 200 200 403 200
audit/suggestions/ GET audit/suggestions/?q=vic 302 403 403 403 200 200 403 200
audit/export.csv GET audit/export.csv?action=hold_placed 302 403 403 403 200 200 403 200
audit/export.json GET audit/export.json?action=hold_placed 302 403 403 403 200 200 403 200
audit/<snowflake:entry_id>/ GET audit/{audit}/ 302 403 403 403 200 200 403 200
roles/ GET roles/ 302 403 403 403 403 200 403 200
roles/ POST roles/ 302 403 403 403 403 403 403 400
roles/limits/ GET roles/limits/ 302 403 403 403 403 200 403 200
roles/limits/ POST roles/limits/ 302 403 403 403 403 403 403 400
roles/invite/ POST roles/invite/ 302 403 403 403 403 403 403 400
roles/<int:grant_id>/take/ POST roles/0/take/ 302 403 403 403 403 403 403 404
invitation/ GET invitation/?token={invitation} 200 200 200 200 200 200 200 200
invitation/ POST invitation/?token={invitation} 400 400 400 400 400 400 400 400
holds/ GET holds/ 302 403 200 200 200 200 403 200
holds/ POST holds/ 302 403 400 400 400 403 403 400
holds/<snowflake:hold_id>/lift/ POST holds/1/lift/ 302 403 403 403 404 403 403 404
reports/ GET reports/ 302 403 200 200 200 200 403 200
reports/<snowflake:case_id>/ GET reports/{case}/ 302 403 404 200 200 200 403 200
reports/<snowflake:case_id>/claim/ POST reports/0/claim/ 302 403 404 404 404 403 403 404
reports/<snowflake:case_id>/release/ POST reports/0/release/ 302 403 404 404 404 403 403 404
reports/<snowflake:case_id>/resolve/ POST reports/{case}/resolve/ 302 403 404 400 400 403 403 400
health/ GET health/ 302 403 403 403 403 403 200 200
health/live/ GET health/live/ 302 403 403 403 403 403 200 200
health/channels/ GET health/channels/ 302 403 403 403 403 403 200 200
health/channels.csv GET health/channels.csv 302 403 403 403 403 403 200 200
health/channels.json GET health/channels.json 302 403 403 403 403 403 200 200
health/<slug:action>/ POST health/nothing/ 302 403 403 403 403 403 404 404
findings/<int:finding_id>/acknowledge/ POST findings/0/acknowledge/ 302 403 403 403 403 403 404 404
maintenance/ GET maintenance/ 302 403 403 403 403 403 200 200
maintenance/live/ GET maintenance/live/ 302 403 403 403 403 403 200 200
maintenance/runs/ GET maintenance/runs/ 302 403 403 403 403 403 200 200
maintenance/runs/<int:run_id>/ GET maintenance/runs/0/ 302 403 403 403 403 403 404 404
maintenance/runs/<int:run_id>/live/ GET maintenance/runs/0/live/ 302 403 403 403 403 403 404 404
maintenance/runs/<int:run_id>/stop/ POST maintenance/runs/0/stop/ 302 403 403 403 403 403 404 404
maintenance/runs/<int:run_id>/again/ POST maintenance/runs/0/again/ 302 403 403 403 403 403 404 404
maintenance/jobs/<slug:name>/ GET maintenance/jobs/bookkeeping/ 302 403 403 403 403 403 200 200
maintenance/jobs/<slug:name>/ POST maintenance/jobs/bookkeeping/ 302 403 403 403 403 403 400 400
maintenance/jobs/<slug:name>/preview/ GET maintenance/jobs/bookkeeping/preview/ 302 403 403 403 403 403 200 200
maintenance/jobs/<slug:name>/run/ POST maintenance/jobs/nothing/run/ 302 403 403 403 403 403 404 404
metrics GET metrics 403 403 403 403 403 403 200 200
"""  # noqa: E501  a line is a URL


def read_table() -> list[tuple[str, str, str, dict[str, int]]]:
    """Return (route, method, URL, {role: status}) of each line."""
    lines = []
    for line in filter(None, map(str.strip, TABLE.splitlines())):
        route, method, url, *statuses = line.split()
        lines.append((route, method, url, dict(zip(ROLES, map(int, statuses), strict=True))))
    return lines


CASES = read_table()

COMMANDS = """
purge_undo 1 --reason x | absent absent absent absent absent absent absent
purge --channel {channel} --author 1 --reason x --yes | absent absent nothing nothing absent absent nothing
second_factor_reset {name} | forbidden forbidden forbidden forbidden forbidden forbidden ok
role list {name} | forbidden forbidden forbidden forbidden ok forbidden ok
role give {name} auditor | forbidden forbidden forbidden forbidden forbidden forbidden ok
role remove 0 | forbidden forbidden forbidden forbidden forbidden forbidden absent
invite {new} auditor | forbidden forbidden forbidden forbidden forbidden forbidden ok
import_discord nowhere.json --restore | forbidden forbidden forbidden nothing forbidden forbidden nothing
"""
"""Commands that act in the name of an account (`--as`), with what each role gets. Without one they act as the system
account `command-line`, which nobody can sign in to. For absent and nothing see `test_access`.
"""

UNOWNED_COMMANDS = frozenset(
    {
        "audit_archive",
        "audit_verify",
        "chatter",
        "demo_accounts",
        "health",
        "id",
        "purge_show",
        "repair",
        "seed_demo",
        "services",
    }
)
"""Commands that act in no name: they read, or belong to those who run the servers."""
