"""Maintenance: jobs with their schedules, and their runs."""

from __future__ import annotations

import datetime as dt
from typing import Any
from zoneinfo import available_timezones

from django import forms
from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from chatstore.domain.errors import BadInput
from chatstore.domain.runs import RunState
from chatstore.domain.schedules import InvalidSchedule, Schedule
from chatstore.operations.jobs.definitions import list_jobs
from chatstore.operations.monitoring import console
from chatstore.operations.rights import MAINTAIN, READ_HEALTH, SCHEDULE, require
from chatstore.tasks import enqueue_run_on_commit
from moderation.domain.datetimes import parse_bound
from moderation.forms import read_cursor
from moderation.operations.access.maintenance_acts import repeat_run, request_run_now, set_schedule, stop_run
from moderation.operations.buckets.repeating import next_steps
from moderation.views.polling import render_live
from moderation.views.saved import redirect_saved
from moderation.views.session import actor_of

OPEN_RUNS = 12
"""Maximum number of open runs listed; the list of all runs has the others."""


class ScheduleForm(forms.Form):
    """A schedule as entered."""

    cron = forms.CharField(max_length=100, label=gettext_lazy("Schedule (cron)"))
    zone = forms.CharField(max_length=60, label=gettext_lazy("Time zone"))
    opens = forms.TimeField(required=False, label=gettext_lazy("Not before"))
    closes = forms.TimeField(required=False, label=gettext_lazy("Not after"))
    is_enabled = forms.BooleanField(required=False)

    @classmethod
    def names_of_entries(cls) -> list[str]:
        """Return the names of the fields that may have errors: those that are typed."""
        return [name for name, field in cls.base_fields.items() if not isinstance(field, forms.BooleanField)]


@require_safe
@permission_required(READ_HEALTH, raise_exception=True)
def maintenance(request: HttpRequest) -> HttpResponse:
    """Show open runs, failed runs, and each job with its schedule and its recent runs."""
    failed = console.failed_runs(request.user)
    context = _describe_open(request) | {
        "failed": list(zip(failed, next_steps(failed), strict=True)),
        "jobs": console.describe_jobs(request.user),
        "stopped_services": console.describe_stopped_services(),
        "cassandra_outage": console.describe_cassandra_outage(),
    }
    return render(request, "moderation/maintenance/maintenance.html", context)


@require_safe
@permission_required(READ_HEALTH, raise_exception=True)
def maintenance_live(request: HttpRequest) -> HttpResponse:
    """Return open runs, for htmx to poll; the page reloads once there are none."""
    context = _describe_open(request)
    return render_live(request, "moderation/maintenance/_open_runs.html", context, keep_polling=bool(context["open"]))


def _describe_open(request: HttpRequest) -> dict[str, Any]:
    shown = console.open_runs(request.user, limit=OPEN_RUNS)
    others = console.count_open_runs(request.user) - len(shown)
    return {"nav": "maintenance", "open": shown, "other_open": max(0, others)}


@require_safe
@permission_required(READ_HEALTH, raise_exception=True)
def runs(request: HttpRequest) -> HttpResponse:
    """List all runs, newest first, filtered by job, state and dates."""
    chosen = {name: request.GET.get(name, "").strip() for name in ("job", "state", "since", "until")}
    page: console.RunPage | None = None
    error_message = ""
    try:
        since, until = _read_time(chosen["since"]), _read_time(chosen["until"], is_end=True)
    except BadInput as error:
        # What was typed stays in its field.
        error_message = error.text
    else:
        page = console.list_runs(
            request.user,
            job=chosen["job"],
            state=chosen["state"],
            since=since,
            until=until,
            before=read_cursor(request.GET, "before"),
        )
    filters = QueryDict(mutable=True)
    filters.update({name: value for name, value in chosen.items() if value})
    context = {
        "nav": "maintenance",
        "page": page,
        "jobs": list_jobs(),
        "states": list(RunState),
        "chosen": chosen,
        "filters": filters.urlencode(),
        "error_message": error_message,
    }
    return render(request, "moderation/maintenance/runs.html", context, status=400 if error_message else 200)


@require_safe
@permission_required(READ_HEALTH, raise_exception=True)
def run(request: HttpRequest, run_id: int) -> HttpResponse:
    """Show a run."""
    entry = console.run_for(request.user, run_id)
    (step,) = next_steps([entry])
    context = {
        "nav": "maintenance",
        "entry": entry,
        "step": step,
        "cassandra_outage": console.describe_cassandra_outage(),
    }
    return render(request, "moderation/maintenance/run.html", context)


@require_safe
@permission_required(READ_HEALTH, raise_exception=True)
def run_live(request: HttpRequest, run_id: int) -> HttpResponse:
    """Return the part of the page that changes, for htmx to poll."""
    entry = console.run_for(request.user, run_id)
    return render_live(
        request,
        "moderation/maintenance/_run_live.html",
        {"entry": entry, "fragment": True},
        keep_polling=not entry.has_ended,
    )


@require_POST
@permission_required(MAINTAIN, raise_exception=True)
def run_stop(request: HttpRequest, run_id: int) -> HttpResponse:
    """Stop a run after its current part."""
    stop_run(run_id, actor=actor_of(request))
    return redirect("run", run_id)


@require_POST
@permission_required(MAINTAIN, raise_exception=True)
def run_again(request: HttpRequest, run_id: int) -> HttpResponse:
    """Request the same run again."""
    again = repeat_run(run_id, actor=actor_of(request))
    enqueue_run_on_commit(again.pk)
    return redirect("run", again.pk)


@require_POST
@permission_required(MAINTAIN, raise_exception=True)
def job_run(request: HttpRequest, name: str) -> HttpResponse:
    """Request a run now; the schedule is not affected."""
    run = request_run_now(name, actor=actor_of(request))
    enqueue_run_on_commit(run.pk)
    return redirect("run", run.pk)


@require_http_methods(["GET", "HEAD", "POST"])
@permission_required(READ_HEALTH, raise_exception=True)
def job(request: HttpRequest, name: str) -> HttpResponse:
    """Show a job, or save its schedule, which requires a permission of its own."""
    if request.method == "POST":
        return _save_schedule(request, name)
    view = console.describe_job(request.user, name)
    return _show_job(request, view, request.GET if "cron" in request.GET else _fields_of(view))


@require_safe
@permission_required(READ_HEALTH, raise_exception=True)
def job_preview(request: HttpRequest, name: str) -> HttpResponse:
    """Return the next runs of an entered schedule, or its error, for htmx."""
    console.describe_job(request.user, name)
    context = _preview(request.GET) | {"fragment": True, "schedule_fields": ScheduleForm.names_of_entries()}
    return render(request, "moderation/maintenance/_schedule_preview.html", context)


def _save_schedule(request: HttpRequest, name: str) -> HttpResponse:
    actor = actor_of(request)
    require(actor, SCHEDULE)
    view = console.describe_job(actor, name)
    try:
        set_schedule(name, _read_schedule(request.POST), is_enabled="is_enabled" in request.POST, actor=actor)
    except InvalidSchedule:
        return _show_job(request, view, request.POST, status=400)
    return redirect_saved(request.path)


def _show_job(request: HttpRequest, view: console.JobView, typed: QueryDict, *, status: int = 200) -> HttpResponse:
    context = _preview(typed) | {
        "nav": "maintenance",
        "view": view,
        "form": ScheduleForm(typed, auto_id="%s"),
        "zones": sorted(available_timezones()),
        "cassandra_outage": console.describe_cassandra_outage(),
    }
    return render(request, "moderation/maintenance/job.html", context, status=status)


def _fields_of(view: console.JobView) -> QueryDict:
    """Return the form's values for the saved schedule."""
    fields = QueryDict(mutable=True)
    fields.update({"cron": view.schedule.cron, "zone": view.schedule.zone})
    if view.schedule.opens is not None and view.schedule.closes is not None:
        fields.update({"opens": f"{view.schedule.opens:%H:%M}", "closes": f"{view.schedule.closes:%H:%M}"})
    if view.is_enabled:
        fields["is_enabled"] = "1"
    return fields


def _preview(typed: QueryDict) -> dict[str, Any]:
    """Describe an entered schedule and its next five runs, or return its error."""
    try:
        schedule = _read_schedule(typed)
    except InvalidSchedule as error:
        return {"error_message": error.text, "wrong_fields": error.fields}
    return {"schedule": schedule, "slots": console.next_slots(schedule), "would_be_enabled": "is_enabled" in typed}


def _read_schedule(typed: QueryDict) -> Schedule:
    """Parse the form. Raises `InvalidSchedule` with the first error."""
    form = ScheduleForm(typed)
    for name, errors in form.errors.items():
        raise InvalidSchedule(str(errors[0]), name)
    fields = form.cleaned_data
    return Schedule(fields["cron"], fields["zone"], fields["opens"], fields["closes"])


def _read_time(text: str, *, is_end: bool = False) -> dt.datetime | None:
    """Parse the beginning of a period, or its end. Raises `BadInput`."""
    return parse_bound(text, now=timezone.localtime(), is_end=is_end) if text else None
