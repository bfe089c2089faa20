"""A chat user: profile, activity by channel, and the purges that affect them."""

from __future__ import annotations

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from chatstore.domain.controls import show_hidden
from moderation.operations.holds import holds_of_author
from moderation.operations.lookup.chat_users import profile_of
from moderation.views.rows import Writer


@require_safe
@permission_required("chatstore.view_chatuser", raise_exception=True)
def chat_user(request: HttpRequest, user_id: int) -> HttpResponse:
    """Show a chat user."""
    profile = profile_of(request.user, user_id)
    name = show_hidden(str(profile.user)) if profile.user else gettext("user %(id)s") % {"id": user_id}
    strips = profile.strips.strips if profile.strips else {}
    context = {
        "profile": profile,
        "who": Writer(user_id, name, is_bot=bool(profile.user and profile.user.is_bot), is_webhook=False),
        "held": holds_of_author(request.user, user_id),
        "rows": [
            (channel_activity, strips.get(channel_activity.channel.pk, ())) for channel_activity in profile.activity
        ],
    }
    return render(request, "moderation/user/user.html", context)
