// The page of a plan: a part that is folded in opens where something in it is refused, and what the plan means is
// marked as busy from a change until it follows it, so that nobody agrees to what it meant before.
(() => {
  "use strict";

  const form = document.getElementById("plan-form");
  const outlook = form.querySelector("aside");
  const busy = (event, is) => {
    if (event.type === "input" || event.type === "change" || event.detail.elt === outlook) outlook.ariaBusy = String(is);
  };

  for (const name of ["input", "change"]) form.addEventListener(name, (event) => busy(event, true));
  document.addEventListener("htmx:beforeRequest", (event) => busy(event, true));
  document.addEventListener("htmx:afterRequest", (event) => busy(event, false));

  document.addEventListener("htmx:afterSettle", () => {
    for (const part of document.querySelectorAll("details.part:not([open])")) {
      if (part.querySelector(".field-errors p")) part.open = true;
    }
  });
})();
