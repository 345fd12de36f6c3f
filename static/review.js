// The page on which a reviewer decides, without a mouse. Everything here is a link or a button of the page.
(() => {
  "use strict";

  const area = document.getElementById("task-area");
  const connection = document.getElementById("connection");
  // What was pressed before the item could be seen was meant for the one before.
  const SEEN_AFTER_MS = 250;
  let busy = false;

  const task = () => document.getElementById("task");
  const writing = (element) =>
    element.closest("input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable]");

  function shown() {
    const now = task();
    window.setTimeout(() => now.setAttribute("data-ready", ""), SEEN_AFTER_MS);
  }
  shown();

  document.addEventListener("htmx:beforeRequest", (event) => {
    const polls = event.detail.elt === task();
    if (!area.contains(event.detail.elt) || polls) return;
    if (busy) return event.preventDefault();
    busy = true;
    connection.hidden = true;
    area.setAttribute("aria-busy", "true");
  });

  document.addEventListener("htmx:afterRequest", (event) => {
    busy = false;
    area.removeAttribute("aria-busy");
    if (event.detail.successful || !area.contains(event.detail.elt)) return;
    connection.textContent = connection.dataset.wordLost;
    connection.hidden = false;
  });

  document.addEventListener("htmx:afterSettle", (event) => {
    if (event.detail.elt !== task() && event.detail.elt !== area) return;
    shown();
    const path = event.detail.requestConfig ? event.detail.requestConfig.path : "";
    const field = document.getElementById("answer");
    // Taken over to be changed: into the field. Another item: to its beginning.
    if (field && path.includes("take=")) field.focus();
    else if (document.activeElement === document.body) {
      const item = document.getElementById("review-item");
      if (item) item.focus({ preventScroll: true });
    }
  });

  document.addEventListener("keydown", (event) => {
    if (event.isComposing || event.defaultPrevented || event.repeat || !task()) return;
    const give = task().querySelector("button[data-give]");
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && give) return press(event, give);
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && writing(event.target)) return event.target.blur();
    if (writing(event.target)) return;
    const key = event.key.toLowerCase();
    const choice = [...task().querySelectorAll("[data-hotkey]")].find(
      (control) => control.dataset.hotkey.toLowerCase() === key,
    );
    if (choice) return press(event, choice);
    if (event.key === "Enter" && give) {
      const here = event.target;
      if (here === document.body || here.type === "checkbox" || here.id === "review-item") press(event, give);
    } else if (/^[1-9]$/.test(key)) {
      const take = task().querySelector(`[data-take="${key}"] kbd`);
      if (take) press(event, take.closest("[data-take]"));
    } else if (key === "s") {
      const skip = task().querySelector("[data-skip]");
      if (skip) press(event, skip);
    } else if (key === "c") {
      const comment = document.getElementById("comment");
      if (!comment) return;
      event.preventDefault();
      comment.focus();
    }
  });

  function press(event, control) {
    event.preventDefault();
    if (!busy && task().hasAttribute("data-ready")) control.click();
  }
})();
