// Looking closer: the image larger, the guidelines beside the item, one label among many.
(() => {
  "use strict";
  const labelling = (window.labelling = window.labelling || {});

  // --- Zoom -------------------------------------------------------------------------------------------------

  const STEP = 1.5;
  const MOST = 12;
  const TOGGLED = 2.5;

  labelling.zoom = (area) => {
    const image = () => document.getElementById("item-image");
    const scale = () => Number((image() && image().dataset.scale) || 1);
    let dragging = null;

    // `at` is the point of the window that stays where it is.
    function to(wanted, at) {
      const seen = image();
      if (!seen) return;
      const box = seen.parentElement;
      const frame = box.getBoundingClientRect();
      const x = at ? at.clientX - frame.left : frame.width / 2;
      const y = at ? at.clientY - frame.top : frame.height / 2;
      const before = scale();
      const now = Math.min(MOST, Math.max(1, wanted));
      const left = ((box.scrollLeft + x) / before) * now - x;
      const top = ((box.scrollTop + y) / before) * now - y;
      seen.dataset.scale = String(now);
      seen.classList.toggle("zoomed", now > 1);
      seen.style.width = seen.style.height = now > 1 ? `${now * 100}%` : "";
      box.scrollLeft = left;
      box.scrollTop = top;
      shown();
    }

    const toggle = (at) => to(scale() > 1 ? 1 : TOGGLED, at);
    const larger = (at) => to(scale() * STEP, at);
    const smaller = (at) => to(scale() / STEP, at);

    function shown() {
      const tools = area.querySelector(".zoom-tools");
      if (!tools) return;
      tools.hidden = !image();
      tools.querySelector("[data-zoom=toggle]").setAttribute("aria-pressed", String(scale() > 1));
    }

    area.addEventListener("click", (event) => {
      const button = event.target.closest("[data-zoom]");
      if (button) ({ in: larger, out: smaller, toggle })[button.dataset.zoom]();
    });
    area.addEventListener("dblclick", (event) => {
      if (event.target === image()) toggle(event);
    });
    area.addEventListener("wheel", (event) => {
      // A wheel alone moves the image, with Ctrl (and two fingers on a pad) it changes its size.
      if (!event.ctrlKey || !event.target.closest(".item-image")) return;
      event.preventDefault();
      to(scale() * (event.deltaY < 0 ? 1.2 : 1 / 1.2), event);
    }, { passive: false });
    area.addEventListener("pointerdown", (event) => {
      if (event.target !== image() || scale() === 1 || event.pointerType === "touch" || event.button) return;
      event.preventDefault();
      const box = image().parentElement;
      dragging = { box, x: event.clientX + box.scrollLeft, y: event.clientY + box.scrollTop };
      image().setPointerCapture(event.pointerId);
    });
    area.addEventListener("pointermove", (event) => {
      if (!dragging) return;
      dragging.box.scrollLeft = dragging.x - event.clientX;
      dragging.box.scrollTop = dragging.y - event.clientY;
    });
    for (const end of ["pointerup", "pointercancel"]) area.addEventListener(end, () => { dragging = null; });

    return { toggle, larger, smaller, shown, isThere: () => Boolean(image()) };
  };

  // --- Guidelines -------------------------------------------------------------------------------------------

  labelling.guidelines = () => {
    const section = document.getElementById("guidelines");
    const opener = document.getElementById("open-guidelines");
    const desk = document.querySelector(".annotate-desk");
    const store = labelling.store("hypac-guidelines", {});
    if (!section) return { toggle: () => false };
    const isWide = window.matchMedia("(min-width: 1100px)");

    // Where there is room they are beside the item, until somebody folds them.
    function fold(now) {
      desk.classList.toggle("folded", now);
      opener.setAttribute("aria-expanded", String(!now || !isWide.matches));
    }

    function toggle() {
      if (isWide.matches) {
        const now = !desk.classList.contains("folded");
        fold(now);
        store.write(now ? { folded: true } : {});
      } else if (section.contains(document.activeElement)) {
        document.activeElement.blur();
        document.getElementById("task-area").scrollIntoView({ block: "start" });
      } else {
        section.scrollIntoView({ block: "start" });
        document.getElementById("guidelines-title").focus({ preventScroll: true });
      }
      return true;
    }

    opener.addEventListener("click", (event) => {
      event.preventDefault();
      toggle();
    });
    opener.setAttribute("aria-controls", "guidelines");
    fold(Boolean(store.read().folded));
    isWide.addEventListener("change", () => fold(desk.classList.contains("folded")));
    return { toggle };
  };

  // --- One label among many ---------------------------------------------------------------------------------

  labelling.finder = (area, say) => {
    const field = () => document.getElementById("find-label");
    const plain = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
    const left = () => [...area.querySelectorAll("#label-form .choice")].filter((choice) => !choice.hidden);

    function filter() {
      const words = plain(field().value).split(/\s+/).filter(Boolean);
      for (const choice of area.querySelectorAll("#label-form .choice")) {
        const name = plain(choice.querySelector(".name").textContent);
        choice.hidden = !words.every((word) => name.includes(word));
      }
      if (words.length) say(left().length);
    }

    function clear() {
      if (!field()) return;
      field().value = "";
      filter();
    }

    area.addEventListener("input", (event) => {
      if (event.target === field()) filter();
    });
    area.addEventListener("keydown", (event) => {
      if (event.target !== field() || event.isComposing) return;
      if (event.key === "Escape") {
        event.preventDefault();
        clear();
        field().blur();
      } else if (event.key === "Enter" && !event.ctrlKey && !event.metaKey) {
        event.preventDefault();
        const first = left()[0];
        if (!field().value.trim() || !first || event.repeat) return;
        clear();
        first.click();
        if (document.activeElement === field() && first.tagName === "BUTTON") field().blur();
      }
    });

    return {
      shown() {
        if (field()) field().parentElement.hidden = false;
        clear();
      },
      focus() {
        if (!field()) return false;
        field().focus();
        return true;
      },
    };
  };
})();
