// Copies a link that is shown once. Without this file it can be selected and copied by hand.
(() => {
  "use strict";
  for (const button of document.querySelectorAll("button[data-copies]")) {
    const field = document.getElementById(button.dataset.copies);
    const status = document.getElementById(`${button.dataset.copies}-status`);
    button.hidden = false;
    field.addEventListener("focus", () => field.select());
    button.addEventListener("click", async () => {
      field.select();
      try {
        // Not there over plain HTTP, other than on this very computer.
        if (navigator.clipboard) await navigator.clipboard.writeText(field.value);
        else if (!document.execCommand("copy")) return;
      } catch {
        return; // it stays selected, to be copied by hand
      }
      status.textContent = button.dataset.done;
      button.lastChild.textContent = button.dataset.done;
    });
  }
})();
