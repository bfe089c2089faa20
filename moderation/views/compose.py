"""Choosing what to remove: by author and dates, or the messages ticked in a timeline."""

from __future__ import annotations

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from chatstore.domain.errors import BadInput
from chatstore.models import Channel
from moderation.domain.selection import Selection
from moderation.forms import ComposeForm
from moderation.operations.access import channel_for
from moderation.operations.compose import Description, Terms, select_described, select_ticked
from moderation.operations.purges import draft_purge
from moderation.operations.strips import map_channel
from moderation.tasks import scan_purge
from moderation.views.session import actor_of


@require_http_methods(["GET", "HEAD", "POST"])
@permission_required("moderation.add_purge", raise_exception=True)
def compose(request: HttpRequest, channel_id: int) -> HttpResponse:
    """The form; posted, what it describes becomes a purge that is scanned, not yet confirmed."""
    channel = channel_for(request.user, channel_id)
    if request.method != "POST":
        return _show_form(request, channel, ComposeForm(initial=request.GET.dict()))
    try:
        selection = _read_selection(request, channel)
    except BadInput as error:
        form = ComposeForm(request.POST)
        return _show_form(request, channel, form, refused=str(error))
    purge = draft_purge(moderator=actor_of(request), selection=selection)
    scan_purge.delay_on_commit(purge.pk)
    return redirect("purge", purge.pk)


def _read_selection(request: HttpRequest, channel: Channel) -> Selection:
    if "ticked" in request.POST:
        # With a script the ids come as one field: a form may have a thousand fields at most.
        ids = [*request.POST.getlist("message_id"), *request.POST.get("message_ids", "").split()]
        return select_ticked(channel.pk, ids)
    form = ComposeForm(request.POST)
    if not form.is_valid():
        raise BadInput(" ".join(str(error) for errors in form.errors.values() for error in errors))
    typed = form.cleaned_data
    description = Description(
        channels=str(channel.pk),
        all=Terms(authors=typed["authors"], after=typed["after"], before=typed["before"]),
        everything=typed["everything"],
        channel_name=channel.name,
    )
    return select_described(description, user=request.user, now=timezone.now())


def _show_form(request: HttpRequest, channel: Channel, form: ComposeForm, *, refused: str = "") -> HttpResponse:
    context = {"channel": channel, "form": form, "refused": refused, "strip": map_channel(channel.pk)}
    return render(request, "compose.html", context, status=400 if refused else 200)
