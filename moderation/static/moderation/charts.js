// Shows the values of a chart by arrow keys. Without it they are shown on hover, and in the table.
"use strict";

const STEPS = { ArrowLeft: -1, ArrowRight: 1, ArrowDown: -1, ArrowUp: 1, PageDown: -7, PageUp: 7, Home: -Infinity, End: Infinity };

for (const chart of document.querySelectorAll("svg[data-chart]")) {
  const days = [...chart.querySelectorAll(".day")];
  if (days.length === 0) continue;
  let here = days.length - 1;

  function show() {
    days.forEach((day, index) => day.classList.toggle("is-here", index === here));
    chart.setAttribute("aria-valuenow", here + 1);
    chart.setAttribute("aria-valuetext", days[here].querySelector(".value").textContent);
  }

  chart.setAttribute("role", "slider");
  chart.setAttribute("tabindex", 0);
  chart.setAttribute("aria-valuemin", 1);
  chart.setAttribute("aria-valuemax", days.length);
  show();
  days[here].classList.remove("is-here");
  chart.addEventListener("focus", show);
  chart.addEventListener("blur", () => days[here].classList.remove("is-here"));
  chart.addEventListener("keydown", (event) => {
    const step = STEPS[event.key];
    if (step === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    here = Math.min(Math.max(here + step, 0), days.length - 1);
    show();
  });
}
