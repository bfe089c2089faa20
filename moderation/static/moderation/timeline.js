// Loads more messages when scrolling either way, and keeps the scroll position.
"use strict";

const list = document.getElementById("messages");
const selectionForm = document.getElementById("selection");

// Rows are inserted above the visible ones. The script keeps the position; the browser must not as well.
document.documentElement.classList.add("keeps-position");

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
}

// A page that opened on a date does not load more before the first scroll.
let waiting = false;
window.addEventListener("scroll", () => {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; followScroll(); });
}, { passive: true });
window.addEventListener("wheel", (event) => {
  if (event.deltaY < 0) requestMore("older");
}, { passive: true });

document.addEventListener("htmx:responseError", () => {
  for (const link of list.querySelectorAll("a[data-requested]")) delete link.dataset.requested;
});

// --- keeping the position when rows are inserted above ----------------------------

let heightBefore = 0;

document.addEventListener("htmx:beforeSwap", (event) => {
  const link = event.detail.requestConfig?.elt;
  heightBefore = link?.dataset.more === "older" ? document.documentElement.scrollHeight : 0;
});

document.addEventListener("htmx:afterSwap", () => {
  joinDays();
  if (heightBefore) {
    window.scrollBy(0, document.documentElement.scrollHeight - heightBefore);
    lastTop = window.scrollY;
    heightBefore = 0;
  }
});

// The strip marks the 10-day periods in view.
const bars = new Map([...document.querySelectorAll(".strip a[data-bucket]")].map((bar) => [bar.dataset.bucket, bar]));

function markBucketsInView() {
  const coveredTop = document.querySelector(".channel-top").getBoundingClientRect().bottom;
  const seen = new Set();
  for (const row of list.querySelectorAll(".msg")) {
    const box = row.getBoundingClientRect();
    if (box.top > window.innerHeight) break;
    if (box.bottom > Math.max(coveredTop, 0)) seen.add(row.dataset.bucket);
  }
  if (!seen.size) return;
  for (const [bucket, bar] of bars) bar.classList.toggle("here", seen.has(bucket));
}

// Two pages of the same day each show its heading: remove the second one.
function joinDays() {
  let shown = "";
  for (const day of list.querySelectorAll(".day")) {
    if (day.dataset.day === shown) day.remove();
    shown = day.dataset.day;
  }
}

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
