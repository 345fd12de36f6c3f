// The buttons that copy what stands beside them.
(() => {
  "use strict";

  function select(element) {
    const range = document.createRange();
    range.selectNodeContents(element);
    const selection = window.getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
  }

  document.addEventListener("click", async (event) => {
    const button = event.target.closest?.("button[data-copies]");
    if (!button) return;
    const source = document.getElementById(button.dataset.copies);
    try {
      await navigator.clipboard.writeText(source.textContent);
    } catch {
      // Without HTTPS a page may not write to the clipboard by itself: what is selected can be copied by hand.
      select(source);
      if (!document.execCommand("copy")) return;
    }
    const said = document.getElementById("copied");
    said.textContent = "";
    said.textContent = said.dataset.words;
    const before = button.dataset.words || button.lastChild.textContent;
    button.dataset.words = before;
    button.lastChild.textContent = said.dataset.words;
    window.setTimeout(() => {
      button.lastChild.textContent = before;
    }, 2000);
  });
})();
