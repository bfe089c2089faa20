// Fields for times: the browser's calendar, and the composer's periods that fill in both fields. Without it, times are
// typed.
"use strict";

const ISO_MINUTE = /^(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d))?/;
// As the server fills it in: "11 Mar 2024, 15:02".
const PRINTED = /^(\d{1,2}) ([A-Z][a-z]{2}) (\d{4})(?:, (\d\d:\d\d))?$/;
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

function readTime(text) {
  const printed = PRINTED.exec(text);
  if (!printed) return ISO_MINUTE.exec(text)?.slice(1) ?? [];
  const [, day, month, year, clock] = printed;
  const number = String(1 + MONTHS.indexOf(month));
  return [`${year}-${number.padStart(2, "0")}-${day.padStart(2, "0")}`, clock];
}

function fillTime(field, text) {
  field.value = text;
  field.dispatchEvent(new Event("input", { bubbles: true }));
}

for (const time of document.querySelectorAll("[data-time]")) {
  const field = time.querySelector("input[type=text]");
  const native = time.querySelector("input:not([type=text])");
  const now = native.value;
  // It belongs to the page, not to the form, which the server reads and the summary listens to.
  native.addEventListener("input", (event) => {
    event.stopPropagation();
    if (native.value) fillTime(field, native.value.replace("T", " "));
  });
  time.querySelector("button").addEventListener("click", () => {
    const [day, clock = "00:00"] = readTime(field.value);
    const typed = native.type === "date" ? day : `${day}T${clock}`;
    native.value = day ? typed : now;
    native.showPicker();
  });
}

for (const preset of document.querySelectorAll(".presets button")) {
  preset.addEventListener("click", () => {
    fillTime(preset.form.elements.after, preset.dataset.after);
    fillTime(preset.form.elements.before, preset.dataset.before);
  });
}
