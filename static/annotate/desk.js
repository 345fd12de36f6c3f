// The item before the person, and those held behind it. The form stays where it is; only what differs from item
// to item is put in, so that the next one is there within the same moment.
(() => {
  "use strict";
  const labelling = (window.labelling = window.labelling || {});
  // A second press of a key that was meant for the last item must not label the next one. Nobody sees, decides
  // and presses within this time.
  const SETTLE_MS = 250;
  const SAID = 300; // characters of an item that are said aloud with "saved"

  const task = () => document.getElementById("task");
  const stage = () => document.getElementById("stage");
  const field = () => document.getElementById("answer");
  const form = () => document.getElementById("label-form");
  const offer = () => document.getElementById("offer"); // has something where a model's answer is shown

  // `on` hears of shown() and of brokenImage().
  labelling.desk = ({ word, clock, drafts, on }) => {
    let current = null; // what is shown: {work_item, token, nodes, given}
    let ahead = []; // what comes next, in its order; their images are loaded already
    let aside = null; // what waits while a stored answer is corrected: {node, current, spent}
    let busy = false;
    let asShown = ""; // what stood in the field when the item appeared
    let tallest = [0, 0]; // of the items that were shown at this width of the window, and of suggestions
    const given = new Set(); // work items that were answered on this page

    const state = () => (task() ? task().dataset.state : "stopped");
    const isReady = () => !busy && task().hasAttribute("data-ready");
    const draftName = () => (current ? `${state() === "correcting" ? "c" : ""}${current.work_item}` : "");

    // --- An item appears ----------------------------------------------------------------------------------

    function prepared(card) {
      const holder = document.createElement("div");
      holder.innerHTML = card.html; // the server escaped it, or made it safe; an image begins to load here
      return { ...card, nodes: [...holder.childNodes] };
    }

    // What the server has put on the page.
    function take() {
      const input = form() && form().querySelector("input[name=work_item]");
      current = null;
      if (input) {
        const token = form().querySelector("input[name=token]").value;
        current = {
          work_item: Number(input.value),
          token,
          nodes: [...stage().childNodes],
          name: document.getElementById("item-name").textContent,
          flagged: !document.getElementById("item-flagged").hidden,
          suggestion: offer().innerHTML.trim(),
        };
        ahead = ahead.filter((card) => card.work_item !== current.work_item);
        if (state() === "item") given.delete(current.work_item);
        if (!("typed" in task().dataset)) restore(drafts.get(draftName()));
      }
      present();
    }

    function fill(card, value, note) {
      current = card;
      stage().replaceChildren(...card.nodes);
      stage().scrollTop = 0;
      offer().innerHTML = card.suggestion || ""; // the server escaped it
      for (const input of task().querySelectorAll("input[name=work_item]")) input.value = card.work_item;
      for (const input of task().querySelectorAll("input[name=token]")) input.value = card.token;
      form().querySelector("input[name=idempotency_key]").value = labelling.randomKey();
      document.getElementById("item-name").textContent = card.name;
      flag(Boolean(card.flagged));
      const line = document.getElementById("task-note");
      line.textContent = note || "";
      line.hidden = !note;
      for (const box of task().querySelectorAll("details")) box.open = false;
      for (const text of task().querySelectorAll("#skip-comment, #flag-text")) text.value = "";
      delete task().dataset.typed;
      answerWith({ value: value ?? null, comment: "" });
      restore(drafts.get(draftName()));
    }

    function flag(now, id = current.work_item) {
      if (!current || current.work_item !== id) return;
      current.flagged = now;
      document.getElementById("item-flagged").hidden = !now;
    }

    // The form as if this had been answered: {value: text, list or null, comment}.
    function answerWith({ value, comment }) {
      for (const choice of form().querySelectorAll("button.choice")) {
        if (choice.value === value) choice.setAttribute("aria-pressed", "true");
        else choice.removeAttribute("aria-pressed");
        choice.classList.remove("pressed");
      }
      for (const box of form().querySelectorAll("input[type=checkbox][name=value]")) {
        box.checked = Array.isArray(value) && value.includes(box.value);
      }
      if (field()) field().value = typeof value === "string" ? value : "";
      form().querySelector("[name=comment]").value = comment || "";
      document.getElementById("comment").open = Boolean(comment);
    }

    function restore(draft) {
      if (draft) answerWith(draft);
    }

    function draftNow() {
      if (!current || !form() || state() === "waiting") return;
      const boxes = [...form().querySelectorAll("input[type=checkbox][name=value]:checked")];
      const value = boxes.length ? boxes.map((box) => box.value) : field() ? field().value : null;
      const comment = form().querySelector("[name=comment]").value;
      drafts.put(draftName(), value || comment ? { value, comment } : null);
    }

    let draftTimer = 0;
    function draftSoon() {
      window.clearTimeout(draftTimer);
      draftTimer = window.setTimeout(draftNow, 300);
    }

    // A form that was open below may have moved the item out of sight, and what is said above it.
    function inSight() {
      if (task().getBoundingClientRect().top < 0) document.querySelector(".annotate-bar").scrollIntoView({ block: "start" });
    }

    // What is below the item stays where it is from one item to the next: the stage becomes no lower, nor does
    // the place of what models suggest, which not every item has.
    function keepHeight() {
      if (!stage()) return;
      [stage(), offer()].forEach((box, place) => {
        tallest[place] = Math.max(tallest[place], box.getBoundingClientRect().height); // offsetHeight rounds
        box.style.minHeight = `${tallest[place]}px`;
      });
    }
    window.addEventListener("resize", () => {
      tallest = [0, 0];
      for (const box of [stage(), offer()]) if (box) box.style.minHeight = "";
      keepHeight();
    });

    function present(spent = 0) {
      const shown = current;
      asShown = field() ? field().value : "";
      inSight();
      keepHeight();
      delete task().dataset.ready;
      if (!current) return on.shown();
      clock.start(spent);
      const image = document.getElementById("item-image");
      const arrived = () => {
        if (current !== shown) return;
        if (image && image.naturalWidth) {
          image.classList.toggle("tiny", Math.max(image.naturalWidth, image.naturalHeight) < 200);
        }
        clock.start(spent);
        window.setTimeout(() => {
          if (current === shown) task().dataset.ready = "";
        }, SETTLE_MS);
      };
      const broken = () => {
        if (current === shown) on.brokenImage();
        arrived();
      };
      // Not where that would bring up a keyboard on the screen, over the item: where a finger points. A computer
      // may well have no pointer at all.
      if (field() && !window.matchMedia("(pointer: coarse)").matches) field().focus({ preventScroll: true });
      else if (document.activeElement.matches("#task button")) document.activeElement.blur();
      on.shown();
      if (!image || (image.complete && image.naturalWidth)) return arrived();
      if (image.complete) return broken();
      image.addEventListener("load", arrived, { once: true });
      image.addEventListener("error", broken, { once: true });
    }

    // --- From item to item --------------------------------------------------------------------------------

    // Further items from the server; what is known already, or was answered meanwhile, is left out.
    function receive(cards) {
      const known = new Set([...holding(), ...given]);
      ahead.push(...(cards || []).filter((card) => !known.has(card.work_item)).map(prepared));
      if (state() === "waiting" && ahead.length) next();
    }

    // What comes next; false where this page has nothing, and the server has to be asked.
    function next() {
      if (aside) {
        const { node, spent } = aside;
        task().replaceWith(node);
        current = aside.current;
        aside = null;
        if (current) {
          present(spent);
          return true;
        }
      }
      if (!form() || state() === "correcting") return false;
      const card = ahead.shift();
      if (!card) return wait();
      task().dataset.state = "item";
      offerToLeave(false);
      fill(card, card.given, card.note);
      form().inert = false;
      present(card.spent);
      return true;
    }

    // Nothing is there: the form keeps its place.
    function wait() {
      current = null;
      task().dataset.state = "waiting";
      delete task().dataset.ready;
      const line = document.createElement("p");
      line.className = "item-waiting";
      line.textContent = word.wordWaiting;
      stage().replaceChildren(line);
      offer().innerHTML = "";
      document.getElementById("task-note").hidden = true;
      document.getElementById("item-name").textContent = "";
      document.getElementById("item-flagged").hidden = true;
      form().inert = true;
      on.shown();
      return false;
    }

    function wordsForWaiting(text) {
      const line = task()?.querySelector(".item-waiting"); // none in a window that has stopped
      if (line) line.textContent = text;
    }

    // An answer of this page that was not sent is before the person again; what they had before them comes next.
    function back(card, answer, note) {
      draftNow();
      if (current && state() === "item") ahead.unshift({ ...current, spent: clock.read() });
      given.delete(card.work_item);
      task().dataset.state = answer ? "unsent" : "item";
      offerToLeave(Boolean(answer));
      form().inert = false;
      fill(card, null, note);
      if (answer) answerWith(answer);
      present();
    }

    function offerToLeave(offered) {
      const leave = task().querySelector("[data-escape]");
      if (leave) leave.hidden = !offered;
    }

    // A part of the page that the server made takes the place of this one. What came with an answer only says
    // what is next: where an item has come another way meanwhile, that one stays.
    function swap(html, { withAnswer = false } = {}) {
      draftNow();
      const parsed = new DOMParser().parseFromString(html, "text/html");
      const node = document.adoptNode(parsed.getElementById("task"));
      const told = labelling.saidIn(parsed);
      const correcting = node.dataset.state === "correcting";
      if (withAnswer && state() === "item" && !correcting && !("typed" in node.dataset)) return told;
      if (!correcting) {
        if (current && state() === "item") ahead.unshift({ ...current, spent: clock.read() });
        if (aside && aside.current) ahead.unshift(aside.current);
        aside = null;
      } else if (!aside && form() && state() !== "correcting") {
        aside = { node: task(), current: state() === "item" ? current : null, spent: clock.read() };
      }
      task().replaceWith(node);
      window.htmx.process(node);
      take();
      return told;
    }

    function holding() {
      const shown = [current, aside && aside.current].filter((card) => card && card.token);
      return [...shown, ...ahead].map((card) => card.work_item);
    }

    function lose(ids) {
      ahead = ahead.filter((card) => !ids.includes(card.work_item));
    }

    return {
      take, receive, next, back, swap, flag, answerWith, holding, lose, draftNow, draftSoon, inSight, isReady, state, wordsForWaiting,
      current: () => current,
      // Leases in the order in which their items are shown.
      first: () => (aside ? aside.current : state() === "item" ? current : null),
      ahead: () => ahead,
      // Nothing that the page has is held any more. What was typed stays a draft.
      forget: () => { draftNow(); current = null; ahead = []; aside = null; },
      gave: (id) => given.add(id),
      isBusy: () => busy,
      inWords() {
        if (state() !== "item") return "";
        const suggested = offer().querySelector("p");
        return [stage().textContent.trim().slice(0, SAID), suggested && suggested.textContent].filter(Boolean).join(" ");
      },
      // What was typed and given before the item could be seen was meant for no item, or for the one before: it
      // must not wait in the field for what is typed next. False where nothing was typed.
      takeOutEarly() {
        if (busy || !field() || field().value === asShown) return false;
        field().value = asShown;
        draftNow();
        return true;
      },
      dropDraft: () => drafts.drop(draftName()),
      setBusy(now) {
        busy = now;
        task().parentElement.toggleAttribute("aria-busy", now);
        // Keys that come now would be lost with the field, or come apart between this one and the next.
        if (field()) field().readOnly = now;
      },
    };
  };
})();
