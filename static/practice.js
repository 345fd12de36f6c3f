"use strict";

// Practice: the key of a label gives it, as on the page on which people label (annotate/keys.js).
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (event.target.closest("input:not([type=checkbox]), textarea, select")) return;
  const area = document.querySelector('#task[data-single-keys="yes"]');
  const control = area?.querySelector(`[data-hotkey="${CSS.escape(event.key)}"]`);
  if (!control) return;
  event.preventDefault();
  control.click();
});
