// Keeps what is filled in in the address, so that reloading the page or going back to it brings it back.
"use strict";

const ADDRESS_MS = 300;
const MAX_ADDRESS = 3000; // characters; gunicorn refuses requests whose first line has more than 4,094

function addressOf(form) {
  const query = new URLSearchParams({ typed: "1" });
  for (const [name, value] of new FormData(form)) {
    if (value && name !== "csrfmiddlewaretoken" && !name.startsWith("filter_")) query.append(name, value);
  }
  const address = `${location.pathname}?${query}`;
  if (address.length <= MAX_ADDRESS) return address;
  // Nothing rather than what was filled in before.
  const preview = form.elements.preview?.value;
  return preview ? `${location.pathname}?preview=${preview}` : location.pathname;
}

let keepsTyped = 0;
document.querySelector("form.composer").addEventListener("input", ({ currentTarget }) => {
  clearTimeout(keepsTyped);
  keepsTyped = setTimeout(() => history.replaceState(history.state, "", addressOf(currentTarget)), ADDRESS_MS);
});
