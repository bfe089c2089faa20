// Scrolling both ways without losing one's place, and ticking ranges with the shift key.
"use strict";

const list = document.getElementById("messages");
const ticks = document.getElementById("ticks");

// Rows are put above what one reads: we keep the place ourselves, the browser must not too.
document.documentElement.classList.add("keeps-place");

if (!location.hash && list.dataset.newest === "1" && !location.search) {
  window.scrollTo(0, document.documentElement.scrollHeight);
}

let heightBefore = 0;

document.addEventListener("htmx:beforeSwap", (event) => {
  heightBefore = event.target.dataset?.more === "older" ? document.documentElement.scrollHeight : 0;
});

document.addEventListener("htmx:afterSettle", () => {
  joinDays();
  countTicks();
});

document.addEventListener("htmx:afterSwap", () => {
  if (heightBefore) {
    joinDays();
    window.scrollBy(0, document.documentElement.scrollHeight - heightBefore);
    heightBefore = 0;
  }
});

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
