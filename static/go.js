// Ctrl+K, or the link in the header, opens the dialog that goes to a project, a page or an item.
(() => {
  "use strict";

  const dialog = document.getElementById("go");
  if (!dialog) return;
  const form = dialog.querySelector("form");
  const field = dialog.querySelector("input[type=search]");
  const links = () => [...dialog.querySelectorAll("#go-places a")];

  function open() {
    if (dialog.open || document.querySelector("dialog[open]")) return;
    field.value = "";
    dialog.showModal();
    field.focus();
    htmx.trigger(form, "go-open");
  }

  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "k" || event.altKey || event.shiftKey || event.ctrlKey === event.metaKey) return;
    event.preventDefault();
    if (dialog.open) dialog.close();
    else open();
  });
  document.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close(); // beside it
    const link = event.target.closest("[data-go]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    open();
  });

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    links()[0]?.click();
  });
  dialog.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const order = [field, ...links()];
    order[(order.indexOf(document.activeElement) + step + order.length) % order.length].focus();
  });
})();
