// The keyboard: what each key presses. Single keys can be switched off; the label's own key goes first.
(() => {
  "use strict";
  const labelling = (window.labelling = window.labelling || {});

  const writing = (element) =>
    element.closest("input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable]");
  const box = (id) => document.getElementById(id);

  // `does`: ready(), tooEarly(), undo(), leave(), zoom, guidelines, finder. Without `singleKeys` only keys that
  // no word is made of do something.
  labelling.keys = ({ singleKeys, does }) => {
    const sheet = document.getElementById("keys");
    const suggestion = () => document.querySelector("#offer [data-take]");

    document.addEventListener("keydown", (event) => {
      if (event.isComposing || event.defaultPrevented) return;
      const give = document.querySelector("#label-form button[data-give]");
      const openBox = ["skip", "flag"].map(box).find((details) => details && details.open);
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.repeat) {
        const wanted = event.shiftKey ? suggestion() : give;
        if (wanted && !sheet.open && !openBox) press(event, wanted);
        return;
      }
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "Escape") return escape(event, openBox);
      if (sheet.open || writing(event.target) || event.repeat) return;
      if (event.key === "Enter") {
        const nowhere = event.target === document.body || event.target.type === "checkbox";
        return give && !openBox && nowhere ? press(event, give) : undefined;
      }
      if (event.key.startsWith("Arrow")) return step(event, openBox ? `#${openBox.id} [name=reason]` : CHOICES);
      if (singleKeys) single(event, openBox);
    });

    function single(event, openBox) {
      const { key } = event;
      if (openBox) {
        // A label's key means the label, and nothing here.
        if ((openBox.id === "skip" && key === "s") || (openBox.id === "flag" && key === "f")) toggle(event, openBox);
        return;
      }
      const choices = [...document.querySelectorAll("#label-form [data-hotkey]")];
      const choice = choices.find((one) => one.dataset.hotkey === key)
        || choices.find((one) => one.dataset.hotkey.toLowerCase() === key.toLowerCase());
      if (choice) return press(event, choice);
      const commands = {
        "?": () => openSheet(),
        a: () => suggestion() && press(event, suggestion()),
        u: does.undo,
        Backspace: does.undo,
        s: () => toggle(event, box("skip")),
        f: () => toggle(event, box("flag")),
        c: () => toggle(event, box("comment")),
        g: does.guidelines.toggle,
        z: does.zoom.toggle,
        "+": does.zoom.larger,
        "-": does.zoom.smaller,
        "/": does.finder.focus,
      };
      if (!Object.hasOwn(commands, key)) return;
      event.preventDefault();
      commands[key]();
    }

    function press(event, button) {
      event.preventDefault();
      if (!does.ready()) return does.tooEarly();
      if (button.matches(".choice")) button.classList.add("pressed");
      button.click();
    }

    function escape(event, openBox) {
      if (sheet.open) return; // the dialog closes by itself
      if (openBox) return toggle(event, openBox);
      const comment = box("comment");
      if (comment && comment.open && comment.contains(document.activeElement)) {
        event.preventDefault();
        return comment.querySelector("summary").focus();
      }
      // Out of the field first: then the other keys work.
      if (document.activeElement === document.getElementById("answer")) return document.activeElement.blur();
      does.leave();
    }

    // Where the focus goes in each: never on a reason, for Enter would skip before anything was chosen.
    const FIRST = { skip: "#skip-title", flag: "#flag-text", comment: "textarea" };

    function toggle(event, details) {
      if (!details) return;
      event.preventDefault();
      details.open = details.id === "comment" || !details.open;
      details.querySelector(details.open ? FIRST[details.id] : "summary").focus();
      if (details.open) details.scrollIntoView({ block: "nearest" });
    }

    // However a panel was opened: it is below the tools, and may be below the window.
    document.addEventListener("toggle", ({ target }) => {
      if (target.open && target.matches("#skip, #flag")) target.lastElementChild.scrollIntoView({ block: "nearest" });
    }, true);

    const SHOWN = "#label-form .choice:not([hidden])";
    const CHOICES = `${SHOWN}[name=value], ${SHOWN} input[type=checkbox]`;

    function step(event, wanted) {
      const direction = event.key === "ArrowRight" || event.key === "ArrowDown" ? 1 : -1;
      const buttons = [...document.querySelectorAll(wanted)];
      const inside = buttons.indexOf(document.activeElement);
      const free = document.activeElement.matches("body, #skip-title");
      if (!buttons.length || (inside < 0 && !free)) return;
      event.preventDefault();
      const next = inside < 0 ? (direction > 0 ? 0 : buttons.length - 1) : inside + direction;
      buttons[(next + buttons.length) % buttons.length].focus();
    }

    // A press beside an open panel closes it.
    document.addEventListener("pointerdown", ({ target }) => {
      for (const panel of ["skip", "flag"].map(box)) {
        if (panel && panel.open && !panel.contains(target)) panel.open = false;
      }
    });

    function openSheet() {
      if (!sheet.open) sheet.showModal();
    }

    document.getElementById("open-keys").addEventListener("click", openSheet);
  };
})();
