// The table of items: ticks, filters that need no button, an item beside its row, and the keys for both.
(() => {
  "use strict";

  const found = () => document.getElementById("found");
  const beside = document.getElementById("item-beside");
  const all = () => document.getElementById("tick-all");
  const boxes = () => [...document.querySelectorAll('.items-table input[name="item"]')];
  const rows = () => [...document.querySelectorAll(".items-table tbody tr")];
  const linkOf = (row) => row.querySelector("th a");
  // On a narrow screen there is no room beside the table: the item has its page.
  const room = window.matchMedia("(min-width: 64rem)");

  // --- Ticks ---------------------------------------------------------------------------------------------------

  let last = null;

  function tell() {
    const every = boxes();
    const ticked = every.filter((box) => box.checked).length;
    const count = document.getElementById("ticked");
    const which = document.querySelector('.change-bar select[name="which"]');
    if (count) count.textContent = count.dataset.words.replace("0", ticked);
    if (all()) {
      all().closest("label").hidden = false;
      all().checked = ticked > 0 && ticked === every.length;
      all().indeterminate = ticked > 0 && ticked < every.length;
    }
    if (which && ticked) which.value = "ticked";
  }

  document.addEventListener("change", (event) => {
    if (event.target === all()) for (const box of boxes()) box.checked = all().checked;
    if (event.target === all() || event.target.name === "item") tell();
  });
  window.addEventListener("pageshow", tell);
  document.addEventListener("htmx:afterSwap", (event) => {
    // Filters were swapped in: what was ticked before is gone.
    if (event.detail.target.id !== "found") return;
    last = null;
    tell();
    mark();
  });

  // --- Filters -------------------------------------------------------------------------------------------------

  const form = document.querySelector("form.filters");

  function needless() {
    const empty = [...form.elements].filter((field) => field.name && field.value === "");
    const columns = [...form.querySelectorAll("fieldset[data-usual] input")];
    if (columns.every((box) => box.checked === box.defaultChecked)) empty.push(...columns);
    return empty;
  }

  form.addEventListener("submit", () => {
    const empty = needless();
    for (const field of empty) field.disabled = true;
    // The page may be shown again from the browser's memory.
    setTimeout(() => {
      for (const field of empty) field.disabled = false;
    });
  });
  form.addEventListener("htmx:configRequest", (event) => {
    for (const field of needless()) {
      const rest = event.detail.formData.getAll(field.name).filter((value) => value !== field.value);
      event.detail.formData.delete(field.name);
      for (const value of rest) event.detail.formData.append(field.name, value);
    }
  });

  // --- The item beside its row ---------------------------------------------------------------------------------

  let shown = null;

  function mark() {
    for (const row of rows()) {
      const chosen = shown !== null && linkOf(row).pathname === shown;
      row.classList.toggle("chosen", chosen);
      if (chosen) linkOf(row).setAttribute("aria-current", "true");
      else linkOf(row).removeAttribute("aria-current");
    }
  }

  function show(row) {
    const link = linkOf(row);
    if (shown === link.pathname) return;
    shown = link.pathname;
    beside.hidden = false;
    document.querySelector(".table-and-item").classList.add("with-item");
    mark();
    const mine = shown;
    const address = new URL(link.href);
    address.searchParams.set("beside", "1");
    // The newest request counts: it ends an older one (hx-sync).
    window.htmx.ajax("GET", address.pathname + address.search, { source: beside, target: beside, swap: "innerHTML" })
      .then(() => { if (mine === shown) beside.scrollTop = 0; });
  }

  function close() {
    const row = rows().find((one) => linkOf(one).pathname === shown);
    shown = null;
    beside.hidden = true;
    beside.replaceChildren();
    document.querySelector(".table-and-item").classList.remove("with-item");
    mark();
    if (row) linkOf(row).focus();
  }

  // Enter on a row that is open already goes on to its label, Escape leads back to the row.
  const correction = () => beside.querySelector("[data-correct] :is(select, textarea, input:not([type=hidden]))");
  const rowShown = () => rows().find((one) => linkOf(one).pathname === shown);

  document.body.addEventListener("item-corrected", async () => {
    const ticked = boxes().filter((box) => box.checked).map((box) => box.value);
    await window.htmx.ajax("GET", location.href, { source: found(), target: "#found", select: "#found", swap: "outerHTML" });
    for (const box of boxes()) box.checked = ticked.includes(box.value);
    tell();
    if (rowShown()) linkOf(rowShown()).focus();
  });

  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-close]")) return close();
    const box = event.target.closest('.items-table input[name="item"]');
    if (box) {
      // With Shift, all between the last one that was ticked and this one.
      const every = boxes();
      if (event.shiftKey && last) {
        const [from, to] = [every.indexOf(last), every.indexOf(box)].sort((a, b) => a - b);
        for (const between of every.slice(from, to + 1)) between.checked = box.checked;
        tell();
      }
      last = box;
      return;
    }
    const row = event.target.closest(".items-table tbody tr");
    const plain = event.button === 0 && !(event.ctrlKey || event.metaKey || event.shiftKey || event.altKey);
    if (!row || !room.matches || !plain || event.target.closest("label")) return;
    if (!event.target.closest("a") && !window.getSelection().isCollapsed) return;
    event.preventDefault();
    const again = event.detail === 0 && shown === linkOf(row).pathname && correction();
    if (again) return again.focus();
    linkOf(row).focus();
    show(row);
  });

  // --- Keys ----------------------------------------------------------------------------------------------------

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const at = document.activeElement.closest(".items-table tbody tr");
    if (event.key === "Escape" && document.activeElement.closest("[data-correct]") && rowShown()) {
      return linkOf(rowShown()).focus();
    }
    if (event.key === "Escape" && shown !== null && !document.querySelector("dialog[open]")) return close();
    if (!at) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      const next = rows()[rows().indexOf(at) + step];
      event.preventDefault();
      if (!next) return;
      linkOf(next).focus();
      if (shown !== null) show(next);
    } else if (event.key === " " && document.activeElement === linkOf(at)) {
      event.preventDefault();
      const box = at.querySelector('input[name="item"]');
      if (box) box.click();
    }
  });
})();
