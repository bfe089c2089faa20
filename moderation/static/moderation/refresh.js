// What purges delete and undos restore in a timeline that is open: the script that polls says when, then the loaded
// rows are read again and merged with those that are shown, which keep their place, selection and focus.
"use strict";

const REST = 5; // times as long as reading took: then the rows are read again at the earliest
let shownRemovals = list.dataset.removals;
let newestRemovals = shownRemovals;
let restUntil = 0;

function noteRemovals(removals) {
  if (removals) newestRemovals = removals;
}

function cursorOf(direction, within = list) {
  const url = within.querySelector(`a[data-more="${direction}"]`)?.getAttribute("href");
  return url ? BigInt(url.match(/[?&](?:before|after)=(-?\d+)/)[1]) : null;
}

function rangeOf() {
  return { older: cursorOf("older"), newer: cursorOf("newer"), last: [...list.querySelectorAll(".msg")].at(-1)?.id };
}

async function readAgain({ older, newer }) {
  const found = [];
  const query = new URLSearchParams({ after: older === null ? list.dataset.beforeAll : older - 1n });
  if (newer !== null) query.set("until", newer);
  for (let next; next !== null; query.set("after", next)) {
    const response = await request(`${list.dataset.rows}?${query}`);
    if (!response.ok) throw new Error(response.status);
    const page = document.createElement("template");
    page.innerHTML = await response.text();
    found.push(...[...page.content.children].filter((node) => node.matches(".msg, .day, .gap")));
    next = cursorOf("newer", page.content);
  }
  return found;
}

async function followRemovals() {
  if (newestRemovals === shownRemovals || Date.now() < restUntil) return;
  const [began, removals, range] = [Date.now(), newestRemovals, rangeOf()];
  const found = await readAgain(range);
  restUntil = Date.now() + REST * (Date.now() - began);
  const now = rangeOf();
  // If more rows were loaded meanwhile, the next poll tries again.
  if (Object.keys(range).some((key) => range[key] !== now[key])) return;
  // A row whose undo is offered stays for now, beside the line of its purge.
  if (!merge(found)) shownRemovals = removals;
}

function countGaps() {
  return [...list.querySelectorAll(".gap[data-total]")].reduce((sum, line) => sum + Number(line.dataset.total), 0);
}

// Returns whether rows stay, because of their undo, that were not found.
function merge(found) {
  const ids = new Set(found.map((node) => node.id));
  const rows = [...list.querySelectorAll(".msg")];
  const stays = (row) => ids.has(row.id) || isOffered(row);
  const wasAtEnd = isAtEnd();
  const anchor = anchorOf(rows, stays);
  const topBefore = anchor && topOfText(anchor);
  const focused = rows.findIndex((row) => row.contains(document.activeElement));
  const focus = focused < 0 ? null : nearestOf(rows, focused, stays)?.id;
  const [gapsBefore, deleted] = [countGaps(), rows.filter((row) => !stays(row) && !row.matches(".deleted")).length];
  let added = 0;
  const open = [...list.querySelectorAll('button[data-gaps][aria-expanded="true"]')].map((each) => each.dataset.gaps);

  for (const line of list.querySelectorAll(":scope > .day, :scope > .gap")) line.remove();
  for (const row of rows) if (!stays(row)) row.remove();
  let at = list.querySelector(':scope > .msg, :scope > .end:has(a[data-more="newer"])');
  for (const node of found) {
    while (node.id && at?.matches(".msg") && !ids.has(at.id) && idOf(at) < idOf(node)) at = at.nextElementSibling;
    const shown = node.id && document.getElementById(node.id);
    if (shown) at = keepRow(shown, node).nextElementSibling;
    else {
      list.insertBefore(node, at);
      if (node.id) added += 1;
    }
  }
  finishRows();
  // Others that were added have arrived meanwhile.
  announce({ deleted, restored: Math.max(Math.min(added, gapsBefore - countGaps()), 0) });
  for (const purge of open) toggleGaps(purge, true);
  count();

  const row = focus && document.getElementById(focus);
  if (row && !row.contains(document.activeElement)) row.querySelector("input, a").focus({ preventScroll: true });
  if (wasAtEnd) window.scrollTo(0, document.documentElement.scrollHeight);
  else if (anchor) window.scrollBy(0, topOfText(document.getElementById(anchor.id)) - topBefore);
  lastTop = window.scrollY;
  markBucketsInView();
  if (document.documentElement.scrollHeight <= window.innerHeight) requestMore("older");
  return rows.some((row) => !ids.has(row.id) && isOffered(row));
}

// The row stays, unless it was restored.
function keepRow(shown, node) {
  if (!shown.classList.contains("deleted") || isOffered(shown)) return shown;
  const [before, after] = [shown, node].map((row) => row.querySelector(".select-input"));
  if (after) after.checked = before?.checked ?? false;
  shown.replaceWith(node);
  return node;
}
