"""Maintenance: what ran, what will run, and one run from its asking to its end."""

from __future__ import annotations

import datetime as dt
from typing import Any
from zoneinfo import available_timezones

from django import forms
from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from chatstore.domain.errors import BadInput
from chatstore.domain.runs import RunState
from chatstore.domain.schedules import Schedule
from chatstore.operations.jobs.definitions import list_jobs, set_schedule
from chatstore.operations.jobs.runs import ask_again, stop_run
from chatstore.operations.monitoring import console as upkeep
from chatstore.operations.rights import MAINTAIN, READ_HEALTH, SCHEDULE, require
from chatstore.tasks import ring_run_on_commit
from moderation.forms import read_cursor
from moderation.views.polling import render_live
from moderation.views.session import actor_of

OPEN_RUNS = 12
"""What is listed of what is at work and waits; the history has the others."""


class ScheduleForm(forms.Form):
    """A schedule as typed."""

    cron = forms.CharField(max_length=100, label="When")
    zone = forms.CharField(max_length=60, label="Time zone")
    opens = forms.TimeField(required=False, label="Not before")
    closes = forms.TimeField(required=False, label="Not after")
    is_on = forms.BooleanField(required=False)


@require_safe
@permission_required(READ_HEALTH, raise_exception=True)
def maintenance(request: HttpRequest) -> HttpResponse:
    """What is at work, what failed, and each job with what it did and when it is due."""
    context = _describe_open(request) | {
        "failed": upkeep.failed_runs(request.user),
        "jobs": upkeep.describe_jobs(request.user),
        "silence": upkeep.say_silence(),
    }
    return render(request, "maintenance.html", context)


@require_safe
@permission_required(READ_HEALTH, raise_exception=True)
def maintenance_live(request: HttpRequest) -> HttpResponse:
    """What is at work, for htmx to fetch again; the whole page anew once nothing is."""
    context = _describe_open(request)
    return render_live(request, "_runs_open.html", context, goes_on=bool(context["open"]))


def _describe_open(request: HttpRequest) -> dict[str, Any]:
    shown = upkeep.open_runs(request.user, at_most=OPEN_RUNS)
    others = upkeep.count_open_runs(request.user) - len(shown)
    return {"nav": "maintenance", "open": shown, "other_open": max(0, others)}


@require_safe
@permission_required(READ_HEALTH, raise_exception=True)
def runs(request: HttpRequest) -> HttpResponse:
    """Every run there was, newest first, by job, state and dates."""
    chosen = {name: request.GET.get(name, "").strip() for name in ("job", "state", "since", "until")}
    page = upkeep.list_runs(
        request.user,
        job=chosen["job"],
        state=chosen["state"],
        since=_read_day(chosen["since"]),
        until=_read_day(chosen["until"]),
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
    }
    return render(request, "runs.html", context)


@require_safe
@permission_required(READ_HEALTH, raise_exception=True)
def run(request: HttpRequest, run_id: int) -> HttpResponse:
    """One run: queued, at work, ended."""
    return render(request, "run.html", {"nav": "maintenance", "entry": upkeep.run_for(request.user, run_id)})


@require_safe
@permission_required(READ_HEALTH, raise_exception=True)
def run_live(request: HttpRequest, run_id: int) -> HttpResponse:
    """The part of it that changes, for htmx to fetch again."""
    entry = upkeep.run_for(request.user, run_id)
    return render_live(request, "_run_live.html", {"entry": entry, "fragment": True}, goes_on=not entry.has_ended)


@require_POST
@permission_required(MAINTAIN, raise_exception=True)
def run_stop(request: HttpRequest, run_id: int) -> HttpResponse:
    """Has a run end between two parts of its work."""
    stop_run(run_id, actor=actor_of(request))
    return redirect("run", run_id)


@require_POST
@permission_required(MAINTAIN, raise_exception=True)
def run_again(request: HttpRequest, run_id: int) -> HttpResponse:
    """The same once more."""
    again = ask_again(run_id, actor=actor_of(request))
    ring_run_on_commit(again.pk)
    return redirect("run", again.pk)


@require_POST
@permission_required(MAINTAIN, raise_exception=True)
def job_run(request: HttpRequest, name: str) -> HttpResponse:
    """A run now; the next one stays where it was."""
    asked = upkeep.ask_now(name, actor=actor_of(request))
    ring_run_on_commit(asked.pk)
    return redirect("run", asked.pk)


@require_http_methods(["GET", "HEAD", "POST"])
@permission_required(READ_HEALTH, raise_exception=True)
def job(request: HttpRequest, name: str) -> HttpResponse:
    """One job: when it is due and what it did; saving its schedule takes a right of its own."""
    if request.method == "POST":
        return _save_schedule(request, name)
    view = upkeep.describe_job(request.user, name)
    return _show_job(request, view, request.GET if "cron" in request.GET else _fields_of(view))


@require_safe
@permission_required(READ_HEALTH, raise_exception=True)
def job_preview(request: HttpRequest, name: str) -> HttpResponse:
    """When what is typed would be due, for htmx; or what is wrong with it."""
    upkeep.describe_job(request.user, name)
    return render(request, "_schedule_preview.html", _preview(request.GET))


def _save_schedule(request: HttpRequest, name: str) -> HttpResponse:
    actor = actor_of(request)
    require(actor, SCHEDULE)
    view = upkeep.describe_job(actor, name)
    try:
        set_schedule(name, _read_schedule(request.POST), is_on="is_on" in request.POST, actor=actor)
    except BadInput:
        return _show_job(request, view, request.POST, status=400)
    return redirect("job", name)


def _show_job(request: HttpRequest, view: upkeep.JobView, typed: QueryDict, *, status: int = 200) -> HttpResponse:
    context = _preview(typed) | {
        "nav": "maintenance",
        "view": view,
        "form": ScheduleForm(typed, auto_id="%s"),
        "zones": sorted(available_timezones()),
    }
    return render(request, "job.html", context, status=status)


def _fields_of(view: upkeep.JobView) -> QueryDict:
    """The form as the schedule stands."""
    fields = QueryDict(mutable=True)
    fields.update({"cron": view.schedule.cron, "zone": view.schedule.zone})
    if view.schedule.opens is not None and view.schedule.closes is not None:
        fields.update({"opens": f"{view.schedule.opens:%H:%M}", "closes": f"{view.schedule.closes:%H:%M}"})
    if view.is_on:
        fields["is_on"] = "1"
    return fields


def _preview(typed: QueryDict) -> dict[str, Any]:
    """What is typed in words, with its next five times; or why it is refused."""
    try:
        schedule = _read_schedule(typed)
    except BadInput as error:
        return {"refused": str(error)}
    return {"schedule": schedule, "slots": upkeep.next_slots(schedule), "would_be_on": "is_on" in typed}


def _read_schedule(typed: QueryDict) -> Schedule:
    """Raises `BadInput` with what is wrong first."""
    form = ScheduleForm(typed)
    for name, errors in form.errors.items():
        raise BadInput(f"{form.fields[name].label}: {errors[0]}")
    fields = form.cleaned_data
    return Schedule(fields["cron"], fields["zone"], fields["opens"], fields["closes"])


def _read_day(text: str) -> dt.date | None:
    """A day as a date field writes it. Raises `BadInput`."""
    if not text:
        return None
    try:
        day = dt.date.fromisoformat(text)
    except ValueError:
        raise BadInput(f"“{text[:40]}” is no day. Write one like 2026-11-21.") from None
    if not dt.MINYEAR < day.year < dt.MAXYEAR:
        raise BadInput("That day lies beyond every calendar.")
    return day
