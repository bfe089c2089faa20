// Enhances every page: copy-link buttons, arrow keys and values on strips, error toasts, and a reload when a job has ended.
// Each page works without it.
"use strict";

// On phones the menu is wider than the screen.
document.querySelector(".nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });

// So may filters be. Only their row scrolls, not the page.
const filter = document.querySelector("nav.filters > [aria-current]");
if (filter) {
  const row = filter.parentElement;
  const [frame, pill] = [row.getBoundingClientRect(), filter.getBoundingClientRect()];
  if (pill.left < frame.left || pill.right > frame.right) row.scrollLeft += pill.left - frame.left - (frame.width - pill.width) / 2;
}

// A reload puts what was in view back in its place. At the top of a page that would hide a new notice above it.
function keepPlace() {
  history.scrollRestoration = window.scrollY > 0 ? "auto" : "manual";
}
document.addEventListener("scroll", keepPlace, { passive: true });
if (performance.getEntriesByType("navigation")[0]?.type === "navigate") keepPlace();

const toast = document.getElementById("toast");
let toastTimer = 0;

// Below a form that is in the notice, such as the offer of an undo.
function showToast(text) {
  if (!toast) return;
  const line = toast.querySelector(":scope > p") ?? toast.appendChild(document.createElement("p"));
  line.textContent = text;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => line.remove(), 4000);
}

// Without a secure context there is no clipboard: then the text is shown, or a link opened, whose text the address bar has.
async function copyText(text, message, { otherwise = () => showToast(text) } = {}) {
  try {
    await navigator.clipboard.writeText(text);
    showToast(message);
  } catch {
    otherwise();
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-copy-id], button[data-copy-link]");
  if (button?.dataset.copyId) copyText(button.dataset.copyId, toast?.dataset.copiedId);
  if (button?.dataset.copyLink) copyText(button.dataset.copyLink, toast?.dataset.copied);
  const link = event.target.closest("a[data-copy]");
  if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
    event.preventDefault();
    copyText(link.href, toast?.dataset.copied, { otherwise: () => window.location.assign(link.href) });
  }
  const filler = event.target.closest("button[data-fill]");
  if (filler) fillReason(filler);
  for (const menu of document.querySelectorAll("details.account[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});

// A template replaces another one, and stands before what was typed.
function fillReason(button) {
  const field = document.getElementById(button.dataset.fill);
  const templates = [...button.parentElement.children].map((other) => other.textContent);
  const typed = field.value.trim();
  field.value = !typed || templates.includes(typed) ? button.textContent : `${button.textContent}: ${typed}`;
  field.focus();
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    for (const menu of document.querySelectorAll("details.account[open]")) menu.open = false;
  }
  const bar = event.target.closest?.(".strip a");
  if (bar) moveOnStrip(event, bar);
});

function moveOnStrip(event, bar) {
  const bars = [...bar.closest("svg").querySelectorAll("a")];
  const at = bars.indexOf(bar);
  const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: bars.length - 1 }[event.key];
  if (to === undefined || !bars[to]) return;
  event.preventDefault();
  bar.setAttribute("tabindex", "-1");
  bars[to].setAttribute("tabindex", "0");
  bars[to].focus();
}

// Below a strip is the value of the bar that is hovered or focused. Screen readers read the bar's label.
let shownBar = null;
function showValue({ type, target, relatedTarget }) {
  const at = type === "focusout" ? relatedTarget : target;
  const bar = at?.closest?.(".strip a") ?? document.activeElement?.closest(".strip a") ?? null;
  if (bar === shownBar) return;
  shownBar = bar;
  const lines = [...document.querySelectorAll(".strip-value")];
  const below = bar && lines.find((line) => bar.compareDocumentPosition(line) & Node.DOCUMENT_POSITION_FOLLOWING);
  for (const line of lines) line.textContent = line === below ? bar.getAttribute("aria-label") : "";
}
for (const change of ["pointerover", "focusin", "focusout"]) document.addEventListener(change, showValue);

// A strip is scrolled to its newest end. Scroll to what the page is about: the messages that it shows, or a purge's.
function scrollStrips(parent) {
  for (const scroller of parent.querySelectorAll("[data-strip]")) {
    const main = scroller.querySelector("a[data-main]");
    const about = scroller.querySelector("a.here") ?? edgeOfWork(scroller) ?? main;
    if (!about || scroller.scrollWidth <= scroller.clientWidth) continue;
    const bar = about.querySelector(".slot").getBoundingClientRect();
    const frame = scroller.getBoundingClientRect();
    scroller.scrollLeft += bar.left - frame.left - frame.width / 2;
  }
}

// Where what a running purge has deleted meets what it has not: the bar at the right of that edge.
function edgeOfWork(scroller) {
  const bars = [...scroller.querySelectorAll("a.deleted, a.to-delete")];
  return bars.find((bar, at) => at > 0 && bar.classList[0] !== bars[at - 1].classList[0]);
}
scrollStrips(document);

// An update leaves a strip where it is.
let scrolledTo = null;
document.addEventListener("htmx:beforeSwap", (event) => {
  scrolledTo = event.target.querySelector("[data-strip]")?.scrollLeft ?? null;
});
document.addEventListener("htmx:afterSwap", (event) => {
  const scroller = event.target.querySelector("[data-strip]");
  if (!scroller) return;
  if (scrolledTo === null) scrollStrips(event.target);
  else scroller.scrollLeft = scrolledTo;
});

// htmx follows the links of HTML by itself, but not those of SVG.
document.addEventListener("click", (event) => {
  const bar = event.target.closest("#times svg a");
  if (!bar || !window.htmx || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const url = new URL(bar.getAttribute("href"), window.location.href);
  const swap = { source: "#times", target: "#times", select: "#times", swap: "outerHTML show:none" };
  const zoomed = window.htmx.ajax("GET", url.pathname + url.search, swap);
  zoomed.then(() => document.querySelector("#times [aria-current]")?.focus({ preventScroll: true })).catch(() => {});
});

// Every further response would restart the reload, which on a slow server would never finish.
let reloading = false;
document.addEventListener("reloadPage", () => {
  if (reloading) return;
  reloading = true;
  window.location.reload();
});
document.addEventListener("htmx:beforeRequest", (event) => {
  if (reloading) event.preventDefault();
});

// The list of channels and the notices follow what happens, but not while they are used, or the page is not seen.
document.addEventListener("htmx:beforeRequest", (event) => {
  const part = event.target;
  if (!part.matches("#sidebar[data-loaded], #notices")) return;
  if (document.hidden || part.matches(":hover, :focus-within")) event.preventDefault();
});

// Times in notices change by the minute: only those about something new are read out, not all that were fetched again.
const notices = document.getElementById("notices");
const keysOf = (notice) => notice.querySelector("[data-keys]").dataset.keys.split(" ").filter(Boolean);
let known = new Set();
function readNotices() {
  const shown = [...notices.querySelectorAll(".page-notice")];
  const added = shown.filter((notice) => keysOf(notice).some((key) => !known.has(key)));
  known = new Set(shown.flatMap(keysOf));
  return added.map((notice) => notice.innerText);
}
if (notices) readNotices();
document.addEventListener("htmx:afterSwap", (event) => {
  if (event.target !== notices) return;
  const [status, text] = [document.getElementById("notices-status"), readNotices().join(" ")];
  if (status.textContent !== text) status.textContent = text;
});
document.addEventListener("htmx:afterSwap", (event) => {
  if (event.target.id !== "sidebar") return;
  event.target.dataset.loaded = "";
  showGuild(event.target.querySelector(".guild[aria-current]"));
});

// A long list of servers scrolls to the open one, clear of the edge where the list fades.
const FADE_PX = 48;
function showGuild(guild) {
  const list = guild?.closest(".guilds");
  if (!list) return;
  const below = guild.getBoundingClientRect().bottom - list.getBoundingClientRect().bottom;
  list.scrollTop += Math.max(below + FADE_PX, 0);
}
showGuild(document.querySelector("#sidebar .guild[aria-current]"));

document.addEventListener("htmx:responseError", (event) => {
  const status = event.detail.xhr.status;
  showToast(status === 503 ? toast?.dataset.unavailable : toast?.dataset.failed.replace("#", status));
});
document.addEventListener("htmx:sendError", () => showToast(toast?.dataset.offline));
