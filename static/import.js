// Upload of a file: dropped anywhere on its card, with progress while it is sent. Without it the form is sent as
// any other.
(() => {
  "use strict";

  const form = () => document.getElementById("upload");
  const say = (words) => {
    const place = document.getElementById("upload-words");
    if (place && place.textContent !== words) place.textContent = words;
  };
  const bar = () => document.getElementById("upload-progress");
  const size = (bytes) =>
    bytes < 1e6 ? `${Math.max(1, Math.round(bytes / 1e3))} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
  const chosen = () => form()?.querySelector("input[type=file]").files[0];
  const tooLarge = () => Boolean(chosen()) && chosen().size > Number(form().dataset.mostBytes);

  document.addEventListener("change", (event) => {
    if (event.target.type !== "file" || event.target.form !== form()) return;
    const file = chosen();
    say(tooLarge() ? form().dataset.tooLarge : file ? `${file.name} · ${size(file.size)}` : "");
  });

  // The marked place of the form takes a drop by itself (site.js); this is for all around it.
  const card = (event) => event.target.closest?.("#upload");
  const holdsFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  for (const name of ["dragenter", "dragover"]) {
    document.addEventListener(name, (event) => {
      if (!card(event) || !holdsFiles(event)) return;
      event.preventDefault();
      card(event).classList.add("over");
    });
  }
  document.addEventListener("dragleave", (event) => {
    const left = card(event);
    if (left && !left.contains(event.relatedTarget)) left.classList.remove("over");
  });
  document.addEventListener("drop", (event) => {
    const target = card(event);
    if (!target) return;
    target.classList.remove("over");
    if (event.defaultPrevented || !event.dataTransfer.files.length) return;
    event.preventDefault();
    const input = target.querySelector("input[type=file]");
    input.files = event.dataTransfer.files;
    input.dispatchEvent(new Event("change", { bubbles: true }));
  });

  document.addEventListener("htmx:beforeRequest", (event) => {
    if (event.target !== form()) return;
    if (tooLarge()) {
      event.preventDefault();
      say(form().dataset.tooLarge);
      return;
    }
    form().setAttribute("aria-busy", "true");
    if (chosen()) {
      bar().hidden = false;
      say(form().dataset.sending);
    }
  });
  document.addEventListener("htmx:xhr:progress", (event) => {
    // The answer's own progress comes here as well: it is a page, and far smaller than what it answers.
    const { loaded, total, lengthComputable } = event.detail;
    if (event.target !== form() || !chosen() || !lengthComputable || total < chosen().size) return;
    bar().value = (100 * loaded) / total;
    if (loaded === total) {
      bar().removeAttribute("value");
      say(form().dataset.reading);
    }
  });
  for (const name of ["htmx:responseError", "htmx:sendError", "htmx:timeout"]) {
    document.addEventListener(name, (event) => {
      if (event.target !== form()) return;
      bar().hidden = true;
      bar().value = 0;
      form().removeAttribute("aria-busy");
      say(name === "htmx:responseError" ? form().dataset.refused : form().dataset.failed);
    });
  }
})();
