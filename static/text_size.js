// The size of the text of items, as the person at this browser wants it. The server reads the cookie, so that a page
// comes in that size at once (annotation/context_processors.py); tokens.css says what each size is.
(() => {
  "use strict";
  const USUAL = 2;
  const LARGEST = 5;
  const root = document.documentElement;
  const buttons = [...document.querySelectorAll("[data-text-step]")];

  const size = () => Number(root.dataset.text || USUAL);

  function shown() {
    for (const button of buttons) {
      const next = size() + Number(button.dataset.textStep);
      button.setAttribute("aria-disabled", String(next < 1 || next > LARGEST));
    }
  }

  for (const button of buttons) {
    button.addEventListener("click", () => {
      const next = size() + Number(button.dataset.textStep);
      if (next < 1 || next > LARGEST) return;
      root.dataset.text = String(next);
      const safe = location.protocol === "https:" ? "; Secure" : "";
      document.cookie = `text_size=${next}; Path=/; Max-Age=31536000; SameSite=Lax${safe}`;
      shown();
    });
  }
  shown();
})();
