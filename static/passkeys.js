// Asks the browser for a passkey, or for a new one, and sends its answer with the form.
(() => {
  "use strict";
  for (const form of document.querySelectorAll("form[data-passkey]")) {
    const note = form.querySelector("[role=alert]");
    const button = form.querySelector("button");
    const tell = (words) => {
      note.textContent = words;
      note.hidden = false;
    };
    const key = window.PublicKeyCredential;
    if (!key?.parseCreationOptionsFromJSON || !key.parseRequestOptionsFromJSON) {
      tell(form.dataset.lacking);
      continue;
    }
    button.disabled = false;
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      button.disabled = true;
      try {
        const options = JSON.parse(form.dataset.options);
        const answer =
          form.dataset.passkey === "create"
            ? await navigator.credentials.create({ publicKey: key.parseCreationOptionsFromJSON(options) })
            : await navigator.credentials.get({ publicKey: key.parseRequestOptionsFromJSON(options) });
        form.elements.credential.value = JSON.stringify(answer);
        form.submit();
      } catch {
        tell(form.dataset.failed);
        button.disabled = false;
      }
    });
  }
})();
