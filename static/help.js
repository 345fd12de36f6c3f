// The link "Help" in the header opens the document beside the page; links from it to others stay in the panel.
(() => {
  "use strict";

  const dialog = document.getElementById("help");
  if (!dialog) return;
  const place = document.getElementById("help-document");
  let shown = ""; // the address, without its heading

  async function show(address) {
    const [page, heading] = address.split("#");
    if (page !== shown) {
      place.setAttribute("aria-busy", "true");
      await htmx.ajax("GET", page, { target: place, swap: "innerHTML" });
      place.removeAttribute("aria-busy");
      if (failed) {
        location.assign(address); // which says what is wrong
        return;
      }
      shown = page;
    }
    const found = (heading && document.getElementById(heading)) || place.querySelector("h2");
    found.tabIndex = -1;
    found.focus({ preventScroll: true });
    if (heading) found.scrollIntoView({ block: "start" });
    else place.parentElement.scrollTop = 0;
  }
  let failed = false;
  place.addEventListener("htmx:beforeRequest", () => { failed = false; });
  for (const name of ["htmx:responseError", "htmx:sendError"]) place.addEventListener(name, () => { failed = true; });

  document.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close(); // beside it
    const link = event.target.closest("a[href]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const opens = link.hasAttribute("data-help");
    const within = place.contains(link) && link.pathname.startsWith(dialog.dataset.documents) && link.host === location.host;
    if (!opens && (!within || link.hasAttribute("data-whole"))) return;
    event.preventDefault();
    if (!dialog.open) dialog.showModal();
    show(link.getAttribute("href"));
  });
})();
