// Labelling by keyboard: one key for one label, keys that tick several, or a field to write in. No answer is lost
// when the connection is.
(() => {
  "use strict";

  const area = document.getElementById("task-area");
  const said = document.getElementById("said");
  const connection = document.getElementById("connection");
  const sheet = document.getElementById("keys");
  const word = area.dataset;
  // A second press of a key that was meant for the last item must not label the next one. Nobody sees, decides
  // and presses within this time.
  const SETTLE_MS = 250;

  let shownAt = 0; // when this item could be seen
  let busy = false; // a request is on its way
  let pending = null; // an answer that did not reach the server: {url, fields: [[name, value], ...]}
  let retryTimer = 0;
  let retryAfter = 2000;

  const task = () => document.getElementById("task");
  const labelForm = () => document.getElementById("label-form");
  const skipBox = () => document.getElementById("skip");
  const answer = () => document.getElementById("answer");

  // --- An item appears ------------------------------------------------------------------------------------

  function present() {
    const image = document.getElementById("item-image");
    // A form that was open below may have moved the item out of sight.
    if (task().getBoundingClientRect().top < 0) task().scrollIntoView({ block: "start" });
    shownAt = 0;
    delete task().dataset.ready;
    const arrived = () => {
      if (image && image.naturalWidth && Math.max(image.naturalWidth, image.naturalHeight) < 200) {
        image.classList.add("tiny");
      }
      const zoom = document.getElementById("zoom");
      if (zoom) zoom.hidden = false;
      shownAt = performance.now();
      const shown = task();
      window.setTimeout(() => {
        if (task() === shown) shown.dataset.ready = "";
      }, SETTLE_MS);
    };
    // Not where that would bring up a keyboard on the screen, over the item: where a finger points. A computer
    // may well have no pointer at all.
    const field = answer();
    if (field && !window.matchMedia("(pointer: coarse)").matches) field.focus({ preventScroll: true });
    if (!image) return arrived();
    if (image.complete) return image.naturalWidth ? arrived() : broken();
    image.addEventListener("load", arrived, { once: true });
    image.addEventListener("error", broken, { once: true });

    function broken() {
      tell(word.wordImage, true);
      arrived();
    }
  }

  const ready = () => !busy && !pending && task().hasAttribute("data-ready");

  // What was typed and given before the item could be seen was meant for no item, or for the one before: it must
  // not wait in the field for what is typed next.
  function tooEarly() {
    const field = answer();
    if (!field || busy || pending || field.value === field.defaultValue) return;
    field.value = field.defaultValue;
    tell(word.wordEarly, true);
  }

  function tell(text, trouble = false) {
    const line = document.createElement("span");
    line.textContent = text;
    if (trouble) line.className = "trouble";
    said.replaceChildren(line);
  }

  // --- Sending --------------------------------------------------------------------------------------------

  const isAnswer = (element) => element && element.id === "label-form";

  area.addEventListener("click", (event) => {
    const button = event.target.closest("#label-form button, button[name=reason]");
    if (button && !ready()) {
      event.preventDefault();
      tooEarly();
    }
  }, true);

  document.addEventListener("htmx:configRequest", (event) => {
    if (isAnswer(event.detail.elt)) {
      event.detail.parameters.lead_time_ms = String(Math.round(performance.now() - shownAt));
    }
  });

  document.addEventListener("htmx:beforeRequest", (event) => {
    const { elt, requestConfig } = event.detail;
    // The empty page looks for work by itself; that must not block anything.
    if (!area.contains(elt) || requestConfig.verb === "get") return;
    if (busy || pending) return event.preventDefault();
    if (isAnswer(elt)) {
      // Answers take the way that can be repeated, the first time as every time.
      event.preventDefault();
      pending = { url: requestConfig.path, fields: plain(requestConfig.parameters) };
      keep(pending);
      return send();
    }
    working(true);
  });

  document.addEventListener("htmx:afterRequest", (event) => {
    if (event.detail.requestConfig.verb === "get") return;
    working(false);
    const status = event.detail.xhr ? event.detail.xhr.status : 0;
    if (status === 0 || status >= 500) tell(status ? word.wordRefused : word.wordLost, true);
  });

  function working(now) {
    busy = now;
    area.toggleAttribute("aria-busy", now);
    // Keys that come now would be lost with the field, or come apart between this one and the next.
    if (answer()) answer().readOnly = now;
  }

  document.addEventListener("htmx:afterSettle", (event) => {
    if (!event.detail.elt || (event.detail.elt.id !== "task" && event.detail.elt !== area)) return;
    // Until now it may have looked like the field before it (htmx settles attributes late).
    if (answer()) answer().value = answer().defaultValue;
    present();
  });

  function plain(parameters) {
    return parameters instanceof FormData ? [...parameters.entries()] : Object.entries(parameters);
  }

  // --- An answer on its way --------------------------------------------------------------------------------

  function keep(answer) {
    try {
      localStorage.setItem(word.outbox, JSON.stringify(answer));
    } catch {
      // A full or forbidden storage: the answer is still held in memory for as long as the page is open.
    }
  }

  function kept() {
    try {
      const answer = JSON.parse(localStorage.getItem(word.outbox));
      if (answer && !Array.isArray(answer.fields)) answer.fields = Object.entries(answer.fields);
      return answer;
    } catch {
      return null;
    }
  }

  function letGo() {
    try {
      localStorage.removeItem(word.outbox);
    } catch {
      // Nothing was stored.
    }
    pending = null;
    connection.hidden = true;
    window.clearTimeout(retryTimer);
    retryAfter = 2000;
  }

  function again(text) {
    connection.textContent = text;
    connection.hidden = false;
    window.clearTimeout(retryTimer);
    retryTimer = window.setTimeout(send, retryAfter);
    retryAfter = Math.min(retryAfter * 1.5, 15000);
  }

  // The same answer with the same key: however often it arrives, it makes one label.
  async function send() {
    if (!pending || busy) return;
    const token = document.querySelector("input[name=csrfmiddlewaretoken]");
    // A name may come several times: several labels have been ticked.
    const fields = pending.fields.filter(([name]) => name !== "csrfmiddlewaretoken");
    if (token) fields.push(["csrfmiddlewaretoken", token.value]);
    working(true);
    try {
      const response = await fetch(pending.url, {
        method: "POST",
        body: new URLSearchParams(fields),
        headers: { "HX-Request": "true", "HX-Target": "task" },
      });
      const html = await response.text();
      working(false);
      const elsewhere = response.headers.get("HX-Redirect");
      // After logging in, this page sends the answer that it finds kept.
      if (elsewhere) return window.location.assign(`${elsewhere.split("?")[0]}?next=${word.page}`);
      if (response.ok) {
        letGo();
        return htmx.swap("#task", html, { swapStyle: "outerHTML" });
      }
      if (response.status >= 500 || response.status === 429) return again(word.wordRefused);
      // Refused for good (no longer a member, a form gone stale): the page as it is now says why.
      letGo();
      window.location.assign(word.page);
    } catch {
      working(false);
      again(word.wordLost);
    }
  }
  window.addEventListener("online", send);

  // --- The lease ------------------------------------------------------------------------------------------

  const beat = Math.max(5, Number(word.leaseSeconds) / 3) * 1000;
  window.setInterval(async () => {
    const form = labelForm();
    if (!form || task().dataset.state !== "item" || pending || document.visibilityState === "hidden") return;
    const fields = new FormData(form);
    try {
      const response = await fetch(word.heartbeat, { method: "POST", body: new URLSearchParams(fields) });
      if (labelForm() === form && response.status === 409) tell(word.wordGone, true);
    } catch {
      // The next beat, or the answer itself, will show whether the connection is back.
    }
  }, beat);

  // --- Keys -----------------------------------------------------------------------------------------------

  const writing = (element) =>
    element.closest("input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable]");

  document.addEventListener("keydown", (event) => {
    if (event.isComposing || event.defaultPrevented) return;
    const give = document.querySelector("#label-form button[data-give]");
    const aside = sheet.open || (skipBox() && skipBox().open);
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && give && !aside && !event.repeat) {
      return press(event, give);
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") return escape(event);
    if (sheet.open || writing(event.target)) return;
    if (event.repeat) return;
    const key = event.key;
    const box = skipBox();
    if (box && box.open) {
      const reason = box.querySelector(`button[data-number="${CSS.escape(key)}"]`);
      if (reason) return press(event, reason);
      if (key === "s") return toggleSkip(event);
      return;
    }
    const choice = [...document.querySelectorAll("#label-form [data-hotkey]")].find(
      (button) => button.dataset.hotkey === key || button.dataset.hotkey.toLowerCase() === key.toLowerCase(),
    );
    if (choice) return press(event, choice);
    if (key === "?") return openSheet(event);
    if (key === "u" || key === "Backspace") {
      const undo = document.querySelector("form[data-undo] button");
      event.preventDefault();
      if (undo && !busy && !pending) undo.click();
    } else if (key === "Enter" && give && (event.target === document.body || event.target.type === "checkbox")) {
      press(event, give);
    } else if (key === "s" && box) {
      toggleSkip(event);
    } else if (key === "z") {
      zoom();
    } else if (key === "ArrowRight" || key === "ArrowDown" || key === "ArrowLeft" || key === "ArrowUp") {
      step(event, key === "ArrowRight" || key === "ArrowDown" ? 1 : -1);
    }
  });

  function press(event, button) {
    event.preventDefault();
    if (!ready()) return tooEarly();
    button.classList.add("pressed");
    button.click();
  }

  function escape(event) {
    const box = skipBox();
    if (sheet.open) return; // the dialog closes by itself
    if (box && box.open) {
      box.open = false;
      box.querySelector("summary").focus();
      event.preventDefault();
      return;
    }
    // Out of the field first: then the other keys work.
    if (document.activeElement === answer()) return document.activeElement.blur();
    const leave = document.querySelector("#task [data-escape]");
    if (leave) leave.click();
  }

  function toggleSkip(event) {
    const box = skipBox();
    event.preventDefault();
    box.open = !box.open;
    // Never on a reason: Enter would skip before anything was chosen.
    box.querySelector(box.open ? "#skip-title" : "summary").focus();
    if (box.open) box.scrollIntoView({ block: "nearest" });
  }

  function openSheet(event) {
    if (event) event.preventDefault();
    if (!sheet.open) sheet.showModal();
  }

  function zoom() {
    const image = document.getElementById("item-image");
    const button = document.getElementById("zoom");
    if (!image || !button) return;
    button.setAttribute("aria-pressed", String(image.classList.toggle("zoomed")));
  }

  function step(event, direction) {
    const buttons = [...document.querySelectorAll("#label-form :is(button, input[type=checkbox])[name=value]")];
    const inside = buttons.indexOf(document.activeElement);
    if (!buttons.length || (inside < 0 && document.activeElement !== document.body)) return;
    event.preventDefault();
    const next = inside < 0 ? (direction > 0 ? 0 : buttons.length - 1) : inside + direction;
    buttons[(next + buttons.length) % buttons.length].focus();
  }

  area.addEventListener("click", (event) => {
    if (event.target.closest("#zoom")) zoom();
  });
  const opener = document.getElementById("open-keys");
  opener.hidden = false;
  opener.addEventListener("click", openSheet);

  // --- Start ----------------------------------------------------------------------------------------------

  present();
  pending = kept();
  send();
})();
