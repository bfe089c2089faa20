// Scrolling both ways without losing one's place, and ticking ranges with the shift key.
"use strict";

const list = document.getElementById("messages");
const ticks = document.getElementById("ticks");

// Rows are put above what one reads: we keep the place ourselves, the browser must not too.
document.documentElement.classList.add("keeps-place");

if ("newest" in list.dataset && (!location.hash || location.hash === "#end")) {
  window.scrollTo(0, document.documentElement.scrollHeight);
}

// --- more rows, when one scrolls towards the end of what is there -------------

const EARLY = 900; // pixels before the end: the rows are there when one arrives
let lastTop = window.scrollY;

function askForMore(direction) {
  const link = list.querySelector(`a[data-more="${direction}"]`);
  if (!link || link.dataset.asked) return;
  const place = link.getBoundingClientRect();
  const near = direction === "older" ? place.bottom > -EARLY : place.top < window.innerHeight + EARLY;
  if (near) {
    link.dataset.asked = "1";
    window.htmx.trigger(link, "more");
  }
}

function followScroll() {
  const top = window.scrollY;
  if (top < lastTop) askForMore("older");
  if (top > lastTop) askForMore("newer");
  lastTop = top;
  showPlace();
}

// A page that opened on a date stays where it is until somebody scrolls.
let waiting = false;
window.addEventListener("scroll", () => {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; followScroll(); });
}, { passive: true });
window.addEventListener("wheel", (event) => {
  if (event.deltaY < 0) askForMore("older");
}, { passive: true });

document.addEventListener("htmx:responseError", () => {
  for (const link of list.querySelectorAll("a[data-asked]")) delete link.dataset.asked;
});

// --- keeping one's place when rows come in above -------------------------------

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
  countTicks();
});

// The strip shows which ten days are in view.
const bars = new Map([...document.querySelectorAll(".strip a[data-bucket]")].map((bar) => [bar.dataset.bucket, bar]));

function showPlace() {
  const cover = document.querySelector(".channel-top").getBoundingClientRect().bottom;
  const seen = new Set();
  for (const row of list.querySelectorAll(".msg")) {
    const place = row.getBoundingClientRect();
    if (place.top > window.innerHeight) break;
    if (place.bottom > Math.max(cover, 0)) seen.add(row.dataset.bucket);
  }
  if (!seen.size) return;
  for (const [bucket, bar] of bars) bar.classList.toggle("here", seen.has(bucket));
}

// Two pages of one day each say the day: the second saying goes.
function joinDays() {
  let said = "";
  for (const day of list.querySelectorAll(".day")) {
    if (day.dataset.day === said) day.remove();
    said = day.dataset.day;
  }
}

// --- ticking ---------------------------------------------------------------

let lastTicked = null;

function boxes() {
  return [...list.querySelectorAll("input.tick")];
}

function countTicks() {
  if (!ticks) return;
  const chosen = boxes().filter((box) => box.checked);
  const count = chosen.length;
  const words = `${count.toLocaleString("en-GB")} message${count === 1 ? "" : "s"}`;
  document.getElementById("ticked-words").textContent =
    count ? `${words} ticked` : "Tick messages to remove them; shift-click ticks a range.";
  document.getElementById("ticked-go").textContent = `Preview removing ${words}`;
  ticks.hidden = count === 0;
  list.classList.toggle("has-ticks", count > 0);
}

list.addEventListener("click", (event) => {
  const box = event.target;
  if (!(box instanceof HTMLInputElement) || !box.classList.contains("tick")) return;
  if (event.shiftKey && lastTicked?.isConnected) {
    const all = boxes();
    const [from, to] = [all.indexOf(lastTicked), all.indexOf(box)].sort((a, b) => a - b);
    for (const other of all.slice(from, to + 1)) other.checked = box.checked;
  }
  lastTicked = box;
  countTicks();
});

// A shift-click on a label would select the text between.
list.addEventListener("mousedown", (event) => {
  if (event.shiftKey && event.target.closest(".tick-box")) event.preventDefault();
});

if (ticks) {
  ticks.addEventListener("reset", () => setTimeout(countTicks, 0));
  // As one field: a form has a bounded number of them.
  ticks.addEventListener("submit", () => {
    const chosen = boxes().filter((box) => box.checked);
    document.getElementById("ticked-ids").value = chosen.map((box) => box.value).join(" ");
    for (const box of chosen) box.disabled = true;
  });
  // Coming back by the browser's own button: what was ticked is to be ticked still.
  window.addEventListener("pageshow", () => {
    for (const box of boxes()) box.disabled = false;
    countTicks();
  });
  countTicks();
}
