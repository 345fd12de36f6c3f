// The table of items: tick all on the page, say how many are ticked, and keep empty filters out of the address.
(() => {
  "use strict";

  const all = document.getElementById("tick-all");
  const boxes = [...document.querySelectorAll('.items-table input[name="item"]')];
  const count = document.getElementById("ticked");
  const which = document.querySelector('.change-bar select[name="which"]');

  function tell() {
    const ticked = boxes.filter((box) => box.checked).length;
    if (count) count.textContent = count.dataset.words.replace("0", ticked);
    if (all) {
      all.checked = ticked > 0 && ticked === boxes.length;
      all.indeterminate = ticked > 0 && ticked < boxes.length;
    }
    if (which && ticked) which.value = "ticked";
  }

  if (all) {
    all.closest("[hidden]")?.removeAttribute("hidden");
    all.addEventListener("change", () => {
      for (const box of boxes) box.checked = all.checked;
      tell();
    });
    let last = null;
    for (const box of boxes) {
      box.addEventListener("change", tell);
      // With Shift, all between the last one that was ticked and this one.
      box.addEventListener("click", (event) => {
        if (event.shiftKey && last) {
          const [from, to] = [boxes.indexOf(last), boxes.indexOf(box)].sort((a, b) => a - b);
          for (const between of boxes.slice(from, to + 1)) between.checked = box.checked;
          tell();
        }
        last = box;
      });
    }
    window.addEventListener("pageshow", tell);
  }

  const form = document.querySelector("form.filters");
  form?.addEventListener("submit", () => {
    const empty = [...form.elements].filter((field) => field.name && field.value === "");
    const columns = [...form.querySelectorAll("fieldset[data-usual] input")];
    if (columns.every((box) => box.checked === box.defaultChecked)) empty.push(...columns);
    for (const field of empty) field.disabled = true;
    // The page may be shown again from the browser's memory.
    setTimeout(() => {
      for (const field of empty) field.disabled = false;
    });
  });
})();
