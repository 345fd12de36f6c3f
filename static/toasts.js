// What has happened, said on the page that follows: over the page (hypac.css), where it moves nothing. Without this
// file it stays where it is until the next page.
(() => {
  "use strict";
  const FIRST_MS = 60;
  // So long, and so much more a character, nobody has to hurry to read it.
  const AT_LEAST_MS = 6000;
  const A_CHARACTER_MS = 80;

  const region = document.getElementById("messages");
  const notes = [...region.querySelectorAll(".note")];
  const busy = () => region.matches(":hover, :focus-within") || document.hidden;

  function dismiss(note) {
    const held = note.contains(document.activeElement);
    note.remove();
    if (held) (region.querySelector("[data-dismiss]") ?? document.getElementById("main")).focus({ preventScroll: true });
  }

  // An error, a warning, and what leads on somewhere stay until somebody dismisses them.
  function goesByItself(note) {
    return !note.matches(".error, .warning") && !note.querySelector("a, form, input");
  }

  function leaveLater(note, left) {
    setTimeout(() => (busy() ? leaveLater(note, AT_LEAST_MS / 2) : dismiss(note)), left);
  }

  // Readers of screens are told what is added to a region, not what a page comes with.
  region.replaceChildren();
  setTimeout(() => {
    for (const note of notes) {
      note.querySelector("[data-dismiss]").hidden = false;
      region.append(note);
      if (goesByItself(note)) leaveLater(note, AT_LEAST_MS + A_CHARACTER_MS * note.textContent.trim().length);
    }
  }, FIRST_MS);

  region.addEventListener("click", (event) => {
    const button = event.target.closest("[data-dismiss]");
    if (button) dismiss(button.closest(".note"));
  });
  region.addEventListener("keydown", (event) => {
    if (event.key === "Escape") dismiss(event.target.closest(".note"));
  });
})();
