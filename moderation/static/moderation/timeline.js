// Loads more messages when scrolling either way and when they arrive, keeps the scroll position, and has the keys and
// tools of messages.
"use strict";

const list = document.getElementById("messages");
const selectionForm = document.getElementById("selection");

// Rows are inserted above the visible ones. The script keeps the position; the browser must not as well.
document.documentElement.style.overflowAnchor = "none";

if ("newest" in list.dataset && (!location.hash || location.hash === "#end")) {
  window.scrollTo(0, document.documentElement.scrollHeight);
}

// --- more rows when scrolling towards either end ---------------------------------

const PREFETCH_PX = 900; // distance to the end at which more rows are requested
let lastTop = window.scrollY;

function requestMore(direction) {
  const link = list.querySelector(`a[data-more="${direction}"]`);
  if (!link || link.dataset.requested) return;
  const box = link.getBoundingClientRect();
  const near = direction === "older" ? box.bottom > -PREFETCH_PX : box.top < window.innerHeight + PREFETCH_PX;
  if (near) {
    link.dataset.requested = "1";
    window.htmx.trigger(link, "more");
  }
}

function followScroll() {
  const top = window.scrollY;
  if (top < lastTop) requestMore("older");
  if (top > lastTop) requestMore("newer");
  lastTop = top;
  markBucketsInView();
  if (isAtEnd()) clearNew();
}

// A page that opened on a date does not load more before the first scroll.
let waiting = false;
window.addEventListener("scroll", () => {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; followScroll(); });
}, { passive: true });
window.addEventListener("wheel", (event) => {
  // At either end the page does not scroll, so no scroll event fires.
  if (event.deltaY && event.target.closest("#main")) requestMore(event.deltaY < 0 ? "older" : "newer");
}, { passive: true });

for (const failed of ["htmx:responseError", "htmx:sendError"]) {
  document.addEventListener(failed, (event) => {
    // Not at once: each step of the wheel would send another request.
    const link = event.detail.elt;
    if (link.dataset.more) setTimeout(() => { delete link.dataset.requested; }, RETRY_MS);
  });
}

// --- keeping the position when rows are loaded ------------------------------------

let anchor = null;

function topOf(element) {
  return element.getBoundingClientRect().top;
}

// The head of the channel covers what is above; on phones only its name.
const heads = [...document.querySelectorAll(".channel-top, .channel-top .page-head")];

function topOfView() {
  return Math.max(0, ...heads.map((head) => head.getBoundingClientRect().bottom));
}

// The row at the index if it stays, otherwise the nearest one that does, at -1 the last one.
function nearestOf(rows, at, stays) {
  return rows.slice(at).find(stays) ?? rows.slice(0, at).findLast(stays);
}

// The row that keeps its place: the first one in view, or if it does not stay the nearest one that does.
function anchorOf(rows, stays = () => true) {
  const top = topOfView();
  return nearestOf(rows, rows.findIndex((row) => row.getBoundingClientRect().bottom > top), stays);
}

// What is below the heading keeps its place: a row may gain or lose its heading.
function topOfText(element) {
  return topOf(element.querySelector(".msg-head ~ *") ?? element);
}

document.addEventListener("htmx:beforeSwap", (event) => {
  const direction = event.detail.requestConfig?.elt?.dataset.more;
  const end = direction === "older" ? document.getElementById("end") : null;
  const element = anchorOf([...list.querySelectorAll(".msg")]) ?? end;
  // Notices are above all rows. At the top they come into view.
  const isAbove = event.target.id === "notices" && window.scrollY > 0;
  anchor = direction || isAbove ? { element, top: element && topOfText(element), follows: isAbove && isAtEnd() } : null;
});

document.addEventListener("htmx:afterSwap", (event) => {
  if (!event.target.matches("#notices, #sidebar")) finishRows();
  if (!anchor) return;
  const before = window.scrollY;
  // Rows were inserted above, or the line of a purge's gaps has joined one below.
  if (anchor.follows) window.scrollTo(0, document.documentElement.scrollHeight);
  else if (anchor.element) window.scrollBy(0, topOfText(anchor.element) - anchor.top);
  // A scroll that its event has still to report counts as one.
  lastTop += window.scrollY - before;
  anchor = null;
});

// The strip marks the 10-day periods in view.
const bars = new Map([...document.querySelectorAll(".strip a[data-bucket]")].map((bar) => [bar.dataset.bucket, bar]));

function markBucketsInView() {
  const [top, seen] = [topOfView(), new Set()];
  let day = null;
  for (const row of list.querySelectorAll(".day, .msg")) {
    if (row.matches(".day")) {
      if (!seen.size) day = row;
      continue;
    }
    const box = row.getBoundingClientRect();
    if (box.top > window.innerHeight) break;
    if (box.bottom > top) seen.add(row.dataset.bucket);
  }
  if (!seen.size) return;
  for (const [bucket, bar] of bars) bar.classList.toggle("here", seen.has(bucket));
  followDay(day?.dataset);
}

// The date on which the timeline was opened is replaced by the day of the first message in view, once that is another
// one than at first, but not what was typed since.
const dateField = document.getElementById("at");
let filled = dateField.matches("[aria-invalid]") ? "" : dateField.value;
let dayInView = "";

function followDay({ day, typed } = {}) {
  // Before, the browser has still to scroll to the date.
  if (!day || day === dayInView || document.readyState !== "complete") return;
  if (dayInView && filled && dateField.value === filled && document.activeElement !== dateField) {
    filled = dateField.value = typed;
  }
  dayInView = day;
}

window.addEventListener("load", markBucketsInView);
// A panel beside the messages makes them narrower, and others come into view.
new ResizeObserver(markBucketsInView).observe(list);

// What stays above the messages, and what scrolling to one must leave clear: the notice of a raid, the channel's head,
// or on phones its name.
// Each height is set where it is used: handed down by the root, it would compute the style of every element.
const root = document.documentElement;
const refusals = [...document.querySelectorAll(".channel-top > .notice")];
const stuck = [root, ...refusals, ...document.querySelectorAll(".side, .channel-top, .channel-top .page-head")];
const measured = [
  ["--notices", "#notices", stuck],
  ["--channel-top", ".channel-top", [root]],
  ["--channel-name", ".channel-top .page-head", [root, ...refusals]],
];
for (const [property, selector, users] of measured) {
  const element = document.querySelector(selector);
  const observer = new ResizeObserver(([{ borderBoxSize: [box] }]) => {
    // Other notices scroll away.
    const height = element.matches("#notices:not(:has(.critical))") ? 0 : box.blockSize;
    for (const user of users) user.style.setProperty(property, `${height}px`);
  });
  const measure = () => observer.observe(element, { box: "border-box" });
  if (!element) continue;
  measure();
  // Also those that are as tall as what was there before.
  if (element.id === "notices") element.addEventListener("htmx:afterSwap", measure);
}

// After rows were added or removed.
function finishRows() {
  joinDays();
  joinGaps();
  joinRuns();
  if (list.querySelector(".msg")) list.querySelector("[data-empty]")?.remove();
}

// Two pages of the same day each show its heading: remove the second one.
function joinDays() {
  let shown = "";
  for (const day of list.querySelectorAll(".day")) {
    if (day.dataset.day === shown) day.remove();
    shown = day.dataset.day;
  }
}

// Each page has one line for the gaps of a purge: join them in the newest one.
function joinGaps() {
  const newest = new Map();
  for (const line of [...list.querySelectorAll(".gap[data-total]")].reverse()) {
    const into = newest.get(line.dataset.purge);
    if (!into) {
      newest.set(line.dataset.purge, line);
      continue;
    }
    const [shown, total] = [Number(into.dataset.total), Number(into.dataset.total) + Number(line.dataset.total)];
    const [before, after] = [shown, total].map((number) => labelFor(number, list.dataset.forms));
    const text = [...into.querySelector(".gap-line > span").childNodes].find((node) => node.data?.includes(before));
    if (text) text.data = text.data.replace(before, after);
    into.dataset.total = total;
    into.classList.remove("single");
    const inAll = into.querySelector("[data-in-all]");
    if (inAll && total >= Number(inAll.dataset.inAll)) inAll.remove();
    line.remove();
    toggleGaps(into.dataset.purge, into.querySelector("button").getAttribute("aria-expanded") === "true");
  }
}

// The server groups the consecutive messages of one author within a page, here they are grouped across pages.
const RUN_MS = Number(list.dataset.runSeconds) * 1000;

function joinRuns() {
  let above = null;
  for (const line of list.children) {
    // Shown on request, it does not end a run.
    if (line.matches(".gap.part")) continue;
    if (line.matches(".msg")) line.classList.toggle("continued", continues(line, above));
    above = line;
  }
}

function continues(row, above) {
  if (!above?.matches(".msg")) return false;
  const isSoon = Number((idOf(row) >> 22n) - (idOf(above) >> 22n)) < RUN_MS;
  // A webhook names the author of each of its messages.
  const isSameAuthor = row.dataset.author === above.dataset.author && authorOf(row) === authorOf(above);
  return isSoon && isSameAuthor && !("reply" in row.dataset);
}

function authorOf(row) {
  return row.querySelector(".msg-head .author").textContent;
}

// --- new messages ------------------------------------------------------------------------

const POLL_MS = 3000;
const MAX_POLL_MS = 60_000;
const MAX_ROWS = 1000; // then the page is opened again: a tab may be open for days
const END_PX = 80;
const newButton = document.getElementById("show-new");
let version = "";
let wasPast = false;
let pollMs = POLL_MS;
let unseen = 0;

const ANNOUNCE_MS = 10_000;
const newStatus = document.getElementById("new-status");
const unannounced = { arrived: 0, deleted: 0, restored: 0 };
let announcing = 0;

// Signed out meanwhile, the server redirects to the sign-in page, which answers such requests with 204.
async function request(url, options = {}) {
  const response = await fetch(url, { ...options, headers: { "HX-Request": "true" } });
  if (response.redirected && response.status === 204) {
    window.location.reload();
    await new Promise(() => {});
  }
  return response;
}

function isAtEnd() {
  return window.scrollY + window.innerHeight > document.documentElement.scrollHeight - END_PX;
}

function isInPast() {
  return Boolean(list.querySelector('a[data-more="newer"]'));
}

function clearNew() {
  unseen = 0;
  newButton.hidden = true;
}

function idOf(row) {
  return BigInt(row.id.slice(1));
}

function append(html) {
  const fragment = document.createElement("template");
  fragment.innerHTML = html;
  const rows = list.querySelectorAll(".msg");
  // In a flood the rows before the newest one reach beyond those that are loaded.
  const isWhole = rows.length === 0 || !list.querySelector('a[data-more="older"]');
  for (const row of fragment.content.querySelectorAll(".msg")) {
    if (document.getElementById(row.id) || !(isWhole || idOf(row) > idOf(rows[0]))) row.remove();
  }
  for (const day of fragment.content.querySelectorAll(".day")) if (!day.nextElementSibling?.matches(".msg")) day.remove();
  const added = [...fragment.content.querySelectorAll(".msg")];
  if (!added.length) return 0;
  const inView = anchorOf([...rows]);
  const top = inView && topOfText(inView);
  // One that was posted under an earlier ID, or restored, belongs between those that are shown.
  const late = added.filter((row) => rows.length && idOf(row) < idOf(rows[rows.length - 1]));
  for (const row of late) [...rows].find((shown) => idOf(shown) > idOf(row)).before(row);
  if (late.length < added.length) list.append(fragment.content);
  finishRows();
  const before = window.scrollY;
  if (inView) window.scrollBy(0, topOfText(inView) - top);
  lastTop += window.scrollY - before;
  return added.length;
}

// Not while a message, a person, a purge or an undo is in hand.
function isInHand() {
  return bar?.hidden === false || document.getElementById("panel")?.hidden === false || offers.size > 0;
}

async function fetchNew() {
  if (document.hidden) return;
  const rows = list.querySelectorAll(".msg");
  const isPast = isInPast();
  if (rows.length >= MAX_ROWS && !isPast && isAtEnd() && !isInHand()) {
    window.location.assign(window.location.pathname);
    return;
  }
  // What arrived while the newest rows were loaded is in neither response: read it now.
  if (wasPast && !isPast) version = "";
  wasPast = isPast;
  const query = new URLSearchParams({ version });
  if (isPast) query.set("past", "1");
  else if (rows.length) query.set("newest", idOf(rows[rows.length - 1]));
  const response = await request(`${list.dataset.new}?${query}`);
  if (!response.ok) throw new Error(response.status);
  // Meanwhile the page has reached the newest rows: of those, the response has none.
  if (isPast && !isInPast()) return;
  if (response.status !== 204) {
    version = response.headers.get("X-Timeline-Version") ?? "";
    noteRemovals(response.headers.get("X-Timeline-Removals"));
    showNew(await response.text());
  }
  await followRemovals();
}

function showNew(html) {
  const wasAtEnd = isAtEnd();
  const added = append(html);
  if (!added) return;
  if (wasAtEnd) {
    window.scrollTo(0, document.documentElement.scrollHeight);
    announce({ arrived: added });
  } else {
    unseen += added;
    newButton.textContent = labelFor(unseen, newButton.dataset.forms);
    newButton.hidden = false;
  }
}

// To screen readers. Above the end of the page, the button says what has arrived.
function announce(numbers) {
  for (const [change, number] of Object.entries(numbers)) unannounced[change] += number;
  if (announcing) return;
  const changes = Object.entries(unannounced).filter(([, number]) => number > 0);
  newStatus.textContent = changes.map(([change, number]) => labelFor(number, newStatus.dataset[change])).join(", ");
  if (changes.length) announcing = setTimeout(() => { announcing = 0; announce({}); }, ANNOUNCE_MS);
  for (const [change] of changes) unannounced[change] = 0;
}

async function poll() {
  try {
    await fetchNew();
    pollMs = POLL_MS;
  } catch {
    pollMs = Math.min(pollMs * 2, MAX_POLL_MS);
  }
  setTimeout(poll, pollMs);
}

newButton.addEventListener("click", () => window.scrollTo(0, document.documentElement.scrollHeight));
document.addEventListener("visibilitychange", () => { if (!document.hidden) fetchNew().catch(() => {}); });
setTimeout(poll, POLL_MS);

// --- tools of a message --------------------------------------------------------------------

const UNDO_MS = 10_000;
const END_MS = 60_000; // for the purge of one message, when many wait
const RETRY_MS = 500;
const deleteForm = document.getElementById("delete-one");
const MAX_OFFERS = 3;
const offers = new Map(); // forms that offer an undo, with the deleted row
const deleting = new Set(); // rows whose deletion was requested

function post(form, fields = {}) {
  const body = new FormData(form);
  for (const [name, value] of Object.entries(fields)) body.set(name, value);
  return request(form.action, { method: "POST", body: new URLSearchParams(body) });
}

function setDeleted(row, isDeleted) {
  row.classList.toggle("deleted", isDeleted);
  const box = row.querySelector(".select-input");
  box.disabled = isDeleted;
  box.checked = false;
  count();
}

function isOffered(row) {
  return deleting.has(row) || [...offers.values()].some((offered) => offered.id === row.id);
}

function offerUndo(row, html) {
  toast.insertAdjacentHTML("afterbegin", html.trim());
  const form = toast.querySelector("form");
  offers.set(form, row);
  setTimeout(closeOffer, UNDO_MS, form);
  const unused = [...offers.keys()].filter((each) => !isUsed(each));
  if (unused.length > MAX_OFFERS) withdrawOffer(unused[0]);
}

function isUsed(form) {
  return form.querySelector("button").disabled;
}

function withdrawOffer(form) {
  offers.delete(form);
  form.remove();
}

function closeOffer(form) {
  if (!offers.has(form) || isUsed(form)) return;
  if (toast.matches(":hover, :focus-within")) setTimeout(closeOffer, 1000, form);
  else withdrawOffer(form);
}

async function deleteOne(row) {
  setDeleted(row, true);
  deleting.add(row);
  const response = await post(deleteForm, { message_id: row.id.slice(1) }).catch(() => null);
  deleting.delete(row);
  if (!response?.ok) {
    setDeleted(row, false);
    showToast(response ? plainText(await response.text()) : toast.dataset.offline);
    return;
  }
  offerUndo(row, await response.text());
}

function plainText(html) {
  return new DOMParser().parseFromString(html, "text/html").body.textContent.trim();
}

// A purge can be undone once it has ended, which takes a second or two.
async function hasEnded(purge) {
  const response = await request(`${purge}live/`).catch(() => null);
  return Boolean(response?.ok && response.headers.get("HX-Trigger"));
}

async function undo(form) {
  if (isUsed(form)) return;
  const purge = form.querySelector("a").href;
  form.querySelector("button").disabled = true;
  for (const until = Date.now() + END_MS; Date.now() < until && !(await hasEnded(purge));) {
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
  const response = await post(form).catch(() => null);
  if (response?.ok) {
    const row = offers.get(form);
    setDeleted(document.getElementById(row.id) ?? row, false);
    withdrawOffer(form);
    showToast(form.dataset.restored);
  } else {
    // The page of the purge says why, and offers the undo again.
    window.location.href = purge;
  }
}

document.addEventListener("submit", (event) => {
  if (event.target === deleteForm) {
    event.preventDefault();
    deleteOne(event.submitter.closest(".msg"));
  } else if (toast.contains(event.target)) {
    event.preventDefault();
    undo(event.target);
  }
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button?.dataset.media) showImage(button);
});

function showImage(button) {
  const image = new Image(button.dataset.width, button.dataset.height);
  image.referrerPolicy = "no-referrer";
  image.alt = button.dataset.alt;
  image.className = "media";
  image.src = button.dataset.media;
  const isFocused = document.activeElement === button;
  const wasAtEnd = isAtEnd();
  button.replaceWith(image);
  // Keep keyboard navigation at this message.
  if (isFocused) {
    image.tabIndex = -1;
    image.focus({ preventScroll: true });
  }
  if (wasAtEnd) keepEnd(image);
}

// Arrivals are followed as long as the image does not leave the view. Without dimensions it grows when it is loaded.
function keepEnd(image) {
  const toEnd = () => window.scrollBy(0, Math.max(topOf(image) - topOfView(), 0));
  toEnd();
  const top = window.scrollY;
  // By then, arrivals and other images may have moved the end; only the user moves up.
  image.addEventListener("load", () => { if (window.scrollY >= top) toEnd(); }, { once: true });
}

// --- keys ----------------------------------------------------------------------------------

const keys = document.getElementById("keys");

function currentRow() {
  return document.activeElement.closest(".msg") ?? list.querySelector(".msg:hover") ?? list.querySelector(".msg:target");
}

function moveTo(step) {
  const rows = [...list.querySelectorAll(".msg")];
  const at = rows.indexOf(currentRow());
  const row = at < 0 ? rows.findLast((each) => each.getBoundingClientRect().top < window.innerHeight) : rows[at + step];
  row?.querySelector("input, a")?.focus({ preventScroll: true });
  row?.scrollIntoView({ block: "nearest" });
}

// The focus moves on: the box of a deleted message is disabled.
function deleteFocused() {
  const row = document.activeElement.closest(".msg:not(.deleted)");
  if (!row) return;
  moveTo(1);
  if (row.contains(document.activeElement)) moveTo(-1);
  row.querySelector(".tools .delete")?.click();
}

const ACTIONS = {
  j: () => moveTo(1),
  k: () => moveTo(-1),
  u: () => currentRow()?.querySelector("a.author")?.click(),
  "?": () => keys.showModal(),
  Delete: () => {
    if (!selectionForm) return;
    if (selectionForm.hidden) deleteFocused();
    else selectionForm.querySelector("button.primary").click();
  },
};

document.addEventListener("keydown", (event) => {
  if (keys.open || event.target.closest("input:not(.select-input), textarea, select, .search, #panel")) return;
  const undoForm = [...offers.keys()].findLast((form) => !isUsed(form));
  if ((event.ctrlKey || event.metaKey) && event.key === "z" && undoForm) {
    event.preventDefault();
    undo(undoForm);
  }
  if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in ACTIONS)) return;
  event.preventDefault();
  ACTIONS[event.key]();
});
document.getElementById("show-keys").addEventListener("click", () => keys.showModal());

// --- deleting the selected messages; selection.js selects them -----------------------

if (selectionForm) {
  // Sent as one field: a form may have a limited number of them.
  selectionForm.addEventListener("submit", () => {
    const selected = [...list.querySelectorAll("input.select-input:checked")];
    document.getElementById("selected-ids").value = selected.map((box) => box.value).join(" ");
    for (const box of selected) box.disabled = true;
  });
  // After the browser's Back button the selection is still there.
  window.addEventListener("pageshow", () => {
    for (const box of list.querySelectorAll("input.select-input")) box.disabled = false;
  });
}
