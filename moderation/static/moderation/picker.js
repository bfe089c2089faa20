// Turns the fields of names of the composer, holds and the audit log into chips with suggestions. Without it, names and
// IDs are typed. The field stays in the form, hidden: it is what the server reads.
"use strict";

const composer = document.querySelector("form[data-suggestions]");
const pickerTemplate = document.getElementById("picker");
const SUGGEST_MS = 120;
const COUNT_MS = 250;

class Picker {
  constructor(field) {
    this.kind = field.dataset.picker;
    this.isSingle = "single" in field.dataset;
    this.listsAll = this.kind === "guilds"; // they are few, so some are offered before anything is typed
    this.source = field.querySelector("input");
    this.picked = JSON.parse(field.dataset.picks || "[]"); // {value, label, facts: [text], avatar: [tone, initials] or null}
    this.shown = [];
    this.active = -1;
    this.requests = 0;

    const body = pickerTemplate.content.firstElementChild.cloneNode(true);
    this.box = body.querySelector(".picker-box");
    this.chips = body.querySelector(".picked");
    this.input = body.querySelector("input");
    this.list = body.querySelector(".picker-list");
    this.options = body.querySelector("[role=listbox]");
    this.none = this.list.querySelector("p");
    this.status = body.querySelector("[role=status]");

    const label = field.querySelector("label");
    this.input.id = `${this.source.id}-picker`;
    this.options.id = `${this.source.id}-options`;
    label.id = `${this.source.id}-label`;
    label.htmlFor = this.input.id;
    this.input.setAttribute("aria-controls", this.options.id);
    this.options.setAttribute("aria-labelledby", label.id);
    this.chips.setAttribute("aria-label", `${label.textContent}: ${pickerTemplate.dataset.chosen}`);
    this.input.maxLength = 200;
    this.placeholder = this.source.placeholder;
    this.source.type = "hidden";
    this.source.after(body);

    // What is being typed is not chosen yet, so the form does not hear of it.
    this.input.addEventListener("input", (event) => { event.stopPropagation(); this.suggestSoon(); });
    if (this.listsAll) this.input.addEventListener("click", () => this.list.hidden && this.suggest());
    this.input.addEventListener("keydown", (event) => this.press(event));
    this.input.addEventListener("paste", (event) => this.paste(event));
    this.input.addEventListener("blur", () => { this.take(); this.close(); });
    this.box.addEventListener("click", (event) => {
      const remove = event.target.closest("button");
      if (remove) this.remove([...this.chips.children].indexOf(remove.parentElement));
      this.input.focus();
    });
    // The input keeps the focus, so that several can be chosen one after the other.
    this.list.addEventListener("mousedown", (event) => event.preventDefault());
    this.options.addEventListener("click", (event) => {
      const option = event.target.closest("[role=option]");
      if (option) this.toggle(this.shown[[...this.options.children].indexOf(option)]);
    });
    this.draw();
  }

  // --- what is chosen ------------------------------------------------------------------------

  has(pick) {
    return this.picked.some((other) => other.value === pick.value);
  }

  draw() {
    // People and channels share names: the handle or the guild is the first fact. What is told apart only by others,
    // such as two channels of a guild, has all of them.
    const noteOf = (pick) => pick.facts.join(" · ");
    const isAlike = (pick) => (other) => other.label === pick.label && other.facts[0] === pick.facts[0];
    this.chips.replaceChildren(...this.picked.map((pick) => {
      const chip = document.createElement("li");
      const name = document.createElement("bdi");
      const remove = document.createElement("button");
      name.textContent = pick.label;
      chip.title = noteOf(pick);
      remove.type = "button";
      remove.textContent = "✕";
      remove.setAttribute("aria-label", pickerTemplate.dataset.remove.replace("#", pick.label));
      chip.append(...avatarOf(pick), name);
      if (pick.facts.length) {
        const mark = document.createElement("bdi");
        mark.className = "small";
        mark.textContent = this.picked.filter(isAlike(pick)).length > 1 ? noteOf(pick) : pick.facts[0];
        chip.append(mark);
      }
      chip.append(remove);
      return chip;
    }));
    this.chips.hidden = this.picked.length === 0;
    this.input.placeholder = this.picked.length ? "" : this.placeholder;
    this.source.value = this.picked.map((pick) => pick.value).join(", ");
  }

  change(text, pick) {
    this.draw();
    this.drawSelected();
    this.status.textContent = text.replace("#", pick.label);
    this.source.dispatchEvent(new Event("input", { bubbles: true }));
  }

  toggle(pick) {
    const at = this.picked.findIndex((other) => other.value === pick.value);
    this.input.value = "";
    if (at >= 0) this.remove(at);
    else this.add(pick);
    if (this.isSingle) this.close();
  }

  add(pick) {
    if (this.has(pick)) return;
    if (this.isSingle) this.picked = [];
    this.picked.push(pick);
    this.change(pickerTemplate.dataset.added, pick);
  }

  remove(at) {
    const [pick] = this.picked.splice(at, 1);
    if (pick) this.change(pickerTemplate.dataset.removed, pick);
  }

  // Chooses what was typed as it is: the summary says if it is no name.
  take(typed = this.input.value) {
    const parts = this.isSingle ? [typed] : typed.split(/[,\n]/);
    for (const text of parts.map((part) => part.trim())) {
      if (text) this.add({ value: text, label: text, facts: [], avatar: null });
    }
    this.input.value = "";
  }

  // Pasted IDs and lists are chosen at once, and then named.
  paste(event) {
    const text = event.clipboardData.getData("text");
    if (!/[,\n]/.test(text.trim()) && !/^\s*-?\d{6,20}\s*$/.test(text)) return;
    event.preventDefault();
    this.take(text);
    this.close();
    for (const pick of this.picked.filter((each) => /^-?\d+$/.test(each.label))) this.name(pick);
  }

  async name(pick) {
    const found = await this.fetch(pick.value);
    if (!found?.[0] || found[0].value !== pick.value) return;
    Object.assign(pick, found[0]);
    this.draw();
  }

  // --- suggestions ---------------------------------------------------------------------------

  async fetch(typed) {
    const query = new URLSearchParams({ kind: this.kind, q: typed });
    const guild = composer.elements.guild?.value;
    if (guild && this.kind === "channels") query.set("guild", guild);
    const response = await fetch(`${composer.dataset.suggestions}?${query}`, { headers: { "HX-Request": "true" } })
      .catch(() => null);
    return response?.status === 200 ? (await response.json()).picks : null;
  }

  suggestSoon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.suggest(), SUGGEST_MS);
  }

  async suggest() {
    const typed = this.input.value.trim();
    const request = ++this.requests;
    const found = typed || this.listsAll ? await this.fetch(typed) : null;
    // Only the answer to the newest text counts, and none after the field was left.
    if (request !== this.requests || document.activeElement !== this.input) return;
    if (found === null) {
      this.close();
      return;
    }
    this.shown = found;
    this.options.replaceChildren(...found.map((pick, index) => {
      const option = document.createElement("li");
      const name = document.createElement("bdi");
      const note = document.createElement("bdi");
      const count = document.createElement("span");
      option.setAttribute("role", "option");
      option.id = `${this.options.id}-${index}`;
      name.textContent = pick.label;
      for (const fact of pick.facts) {
        const part = document.createElement("span");
        part.textContent = fact;
        note.append(part, " ");
      }
      name.className = "option-name";
      note.className = "dotted quiet small";
      count.className = "option-count quiet small";
      option.append(...avatarOf(pick), name, note, count);
      return option;
    }));
    this.none.textContent = pickerTemplate.dataset[this.kind];
    this.none.hidden = found.length > 0;
    this.options.hidden = found.length === 0;
    this.list.hidden = false;
    this.input.setAttribute("aria-expanded", String(found.length > 0));
    if (!found.length) this.status.textContent = this.none.textContent;
    this.drawSelected();
    this.activate(found.length ? 0 : -1);
    if (composer.dataset.counts && this.kind === "people" && found.length) setTimeout(() => this.count(request), COUNT_MS);
  }

  async count(request) {
    if (request !== this.requests || this.list.hidden) return;
    const body = new URLSearchParams(new FormData(composer));
    body.set("people", this.shown.map((pick) => pick.value).join(","));
    const response = await fetch(composer.dataset.counts, { method: "POST", body, headers: { "HX-Request": "true" } })
      .catch(() => null);
    if (response?.status !== 200 || request !== this.requests) return;
    const { counts } = await response.json();
    this.shown.forEach((pick, index) => {
      const place = this.options.children[index]?.querySelector(".option-count");
      if (place) place.textContent = counts[pick.value] ?? "";
    });
  }

  drawSelected() {
    [...this.options.children].forEach((option, index) => {
      option.setAttribute("aria-selected", String(this.has(this.shown[index])));
    });
  }

  activate(index) {
    this.options.children[this.active]?.classList.remove("is-active");
    this.active = index;
    const option = this.options.children[index];
    if (!option) {
      this.input.removeAttribute("aria-activedescendant");
      return;
    }
    option.classList.add("is-active");
    option.scrollIntoView({ block: "nearest" });
    this.input.setAttribute("aria-activedescendant", option.id);
  }

  close() {
    clearTimeout(this.timer);
    this.requests += 1;
    this.list.hidden = true;
    this.shown = [];
    this.options.replaceChildren();
    this.input.setAttribute("aria-expanded", "false");
    this.activate(-1);
  }

  press(event) {
    if (event.isComposing || event.ctrlKey || event.altKey || event.metaKey) return;
    const { key } = event;
    if (key === "ArrowDown" || key === "ArrowUp") {
      event.preventDefault();
      if (this.list.hidden) this.suggest();
      else if (this.shown.length) {
        const step = key === "ArrowDown" ? 1 : -1;
        this.activate((this.active + step + this.shown.length) % this.shown.length);
      }
    } else if (key === "Enter" && this.shown[this.active] && !this.list.hidden) {
      event.preventDefault();
      this.toggle(this.shown[this.active]);
    } else if ((key === "Enter" || key === ",") && this.input.value.trim()) {
      event.preventDefault();
      this.take();
      this.close();
    } else if (key === "Escape" && !this.list.hidden) {
      event.preventDefault();
      this.close();
    } else if (key === "Backspace" && !this.input.value && this.picked.length) {
      event.preventDefault();
      this.remove(this.picked.length - 1);
    }
  }
}

function avatarOf(pick) {
  if (!pick.avatar) return [];
  const avatar = document.createElement("span");
  avatar.className = `avatar xs tone${pick.avatar[0]}`;
  avatar.setAttribute("aria-hidden", "true");
  avatar.textContent = pick.avatar[1];
  return [avatar];
}

const pickers = [...composer.querySelectorAll("[data-picker]")].map((field) => new Picker(field));

// A browser that restores fields after its Back button must not restore others than the chips that are shown.
window.addEventListener("pageshow", () => pickers.forEach((picker) => picker.draw()));
composer.addEventListener("submit", () => pickers.forEach((picker) => { picker.take(); picker.draw(); }));
