// Counts the messages of the selected accounts of a raid, and how many of these accounts are old members. A preview is
// offered only if purges under way don't include all of them. A group of similar messages selects those who wrote it.
// The slider below the chart chooses the time as the two lists do.
"use strict";

const raid = document.getElementById("raid");
const language = document.documentElement.lang;
const plurals = new Intl.PluralRules(language);

function label(element, number, forms = element.dataset.forms) {
  // The label for some numbers, with # in their place: those of the same plural form as this one share its label.
  const [, pattern] = Object.entries(JSON.parse(forms)).find(([sample]) => plurals.select(Number(sample)) === plurals.select(number));
  element.textContent = pattern.replace("#", number.toLocaleString(language));
}

function count() {
  const selected = [...raid.querySelectorAll('input[name="account"]:checked')];
  const messages = selected.reduce((sum, box) => sum + Number(box.dataset.messages), 0);
  const established = selected.filter((box) => "established" in box.dataset).length;
  const included = selected.reduce((sum, box) => sum + Number(box.dataset.included ?? 0), 0);
  const status = raid.querySelector("[data-selected]");
  const warning = raid.querySelector("[data-established-count]");
  const submit = raid.querySelector("[data-submit]");
  submit.hidden = messages > 0 && included === messages;
  submit.disabled = selected.length === 0;
  label(status, messages, submit.hidden ? status.dataset.includedForms : status.dataset.forms);
  if (!submit.disabled) label(submit, messages);
  warning.hidden = established === 0;
  label(warning, established);
}

function selectGroup(event) {
  const button = event.target.closest('button[name="select"]');
  if (!button) return;
  event.preventDefault();
  const wanted = new Set(button.value.split(" "));
  for (const box of raid.querySelectorAll('input[name="account"]')) box.checked = wanted.has(box.value);
  raid.elements.chosen_elsewhere.value = "";
  raid.elements.only.value = "1";
  const others = raid.querySelector(".other-accounts");
  if (others?.querySelector("input:checked")) others.open = true;
  count();
}

// Without accounts there is nothing to select.
if (raid.querySelector("[data-submit]")) {
  raid.addEventListener("change", count);
  raid.addEventListener("click", selectGroup);
  window.addEventListener("pageshow", count);
  count();
}

const slider = raid.querySelector("[data-moments]");
// Arrow keys move it a bar at a time: the page is loaded once they rest.
const REST_MS = 400;

function beginSlider() {
  const moments = JSON.parse(slider.dataset.moments);
  const last = moments.length - 1;
  const [from, until] = [slider.querySelector("[data-from]"), slider.querySelector("[data-until]")];
  let timer;

  function choose(list, [value, text]) {
    if (![...list.options].some((option) => option.value === value)) list.add(new Option(text, value));
    list.value = value;
  }

  function draw() {
    for (const input of [from, until]) input.setAttribute("aria-valuetext", moments[input.value][1]);
    slider.querySelector("[data-before]").style.width = `${(100 * from.value) / last}%`;
    slider.querySelector("[data-after]").style.width = `${(100 * (last - until.value)) / last}%`;
    // At the right end the other one could not be moved back.
    from.classList.toggle("above", Number(from.value) > last / 2);
  }

  function move(event) {
    event.stopPropagation();
    if (event.target === from) from.value = Math.min(from.value, until.value - 1);
    else until.value = Math.max(until.value, Number(from.value) + 1);
    choose(raid.elements.start, moments[from.value]);
    choose(raid.elements.end, moments[until.value]);
    draw();
    clearTimeout(timer);
  }

  function show(event) {
    move(event);
    timer = setTimeout(() => raid.querySelector('[name="show"]').click(), REST_MS);
  }

  for (const input of [from, until]) {
    input.max = last;
    input.addEventListener("input", move);
    input.addEventListener("change", show);
  }
  from.value = 0;
  until.value = last;
  slider.hidden = false;
  draw();
}

if (slider) beginSlider();
