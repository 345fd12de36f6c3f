// The dialog that asks before what cannot be undone; components/_ask.html says how a form asks for it. Pages wait for
// this file: a press before it is there would do without asking what cannot be undone.
(() => {
  "use strict";

  let dialog, question, then, yes; // once the page holds them
  let asked = null; // { form, button } that the dialog is about
  let agreed = null; // the form that is sent next without being asked about again

  function found() {
    if (dialog) return true;
    dialog = document.getElementById("ask");
    if (!dialog) return false;
    [question, then, yes] = ["#ask-question", "#ask-then", "button[value=yes]"].map((part) => dialog.querySelector(part));
    dialog.querySelector("form").addEventListener("submit", (event) => {
      event.preventDefault();
      answer(event.submitter === yes);
    });
    dialog.addEventListener("cancel", (event) => {
      event.preventDefault();
      answer(false);
    });
    // A press beside the dialog means no, but not the second one of two that were to open it.
    dialog.addEventListener("click", (event) => {
      if (event.target === dialog && event.detail < 2) answer(false);
    });
    return true;
  }

  function fill(text, more, from) {
    const end = text.indexOf("?") + 1 || text.length;
    question.textContent = text.slice(0, end);
    then.replaceChildren(text.slice(end).trim());
    if (more) then.append(more.content.cloneNode(true));
    yes.textContent = from("askYes") ?? asked.button?.textContent.trim();
    const no = dialog.querySelector("button[value='']");
    no.textContent = from("askNo") ?? no.dataset.words;
    const danger = from("askDanger") !== undefined || asked.button?.classList.contains("danger");
    yes.classList.toggle("danger", Boolean(danger));
    (danger ? no : yes).autofocus = true;
    (danger ? yes : no).autofocus = false;
  }

  document.addEventListener("submit", (event) => {
    const [form, button] = [event.target, event.submitter];
    const from = (name) => button?.dataset[name] ?? form.dataset[name];
    const text = from("ask");
    if (form === agreed || !text) return;
    const early = !found();
    const more = from("askMore") && document.getElementById(from("askMore"));
    // What would be shown is about to be another, or to come at all: the question waits for it.
    const waits = more ? more.closest("[aria-busy=true]") : more === null && form.querySelector("[aria-busy=true]");
    if (more === null && !waits && !early) return;
    event.preventDefault();
    event.stopPropagation();
    if (early) {
      document.addEventListener("DOMContentLoaded", () => form.requestSubmit(button), { once: true });
      return;
    }
    if (dialog.open) return;
    if (waits) {
      document.addEventListener("htmx:afterRequest", () => form.requestSubmit(button), { once: true });
      return;
    }
    asked = { form, button };
    fill(text, more, from);
    dialog.showModal();
  }, true);

  // At once, and not when the browser gets to tell that the dialog was closed: it may be open again by then.
  function answer(agrees) {
    const { form, button } = asked;
    dialog.close();
    if (!agrees) {
      // What the page asks for every few seconds may have replaced the button meanwhile.
      const same = (other) => other.action === form.action && other.dataset.ask === form.dataset.ask;
      if (!form.isConnected) [...document.forms].find(same)?.querySelector("button")?.focus();
      return;
    }
    if (!form.isConnected) {
      form.hidden = true;
      document.body.append(form);
    }
    if (button && button.form !== form) { // it alone was replaced
      button.hidden = true;
      form.append(button);
    }
    agreed = form;
    form.requestSubmit(button);
    agreed = null;
  }
})();
