// Passkeys: asks the browser for one, and submits the form with its answer. A form names what it needs in data-passkey
// ("create" or "get") and data-options; its button stays hidden in browsers without passkeys.
"use strict";

(() => {
  const KINDS = {
    create: (json) => [
      "create",
      { publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(json) },
    ],
    get: (json) => ["get", { publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(json) }],
  };

  const isSupported =
    window.PublicKeyCredential &&
    PublicKeyCredential.parseCreationOptionsFromJSON &&
    PublicKeyCredential.parseRequestOptionsFromJSON;

  async function ask(form) {
    const [method, options] = KINDS[form.dataset.passkey](JSON.parse(form.dataset.options));
    const credential = await navigator.credentials[method](options);
    form.elements.passkey.value = JSON.stringify(credential.toJSON());
    form.dataset.answered = "1";
    form.requestSubmit();
  }

  for (const form of document.querySelectorAll("form[data-passkey]")) {
    const error = form.querySelector("[data-passkey-error]");
    if (!isSupported) continue;
    form.hidden = false;
    form.addEventListener("submit", (event) => {
      if (form.dataset.answered) return;
      event.preventDefault();
      error.hidden = true;
      ask(form).catch(() => {
        error.hidden = false;
      });
    });
  }
})();
