// The page of a plan: a part that is folded in opens where something in it is refused.
(() => {
  "use strict";

  document.addEventListener("htmx:afterSettle", () => {
    for (const part of document.querySelectorAll("details.part:not([open])")) {
      if (part.querySelector(".field-errors p")) part.open = true;
    }
  });
})();
