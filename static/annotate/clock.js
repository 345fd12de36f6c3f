// The time that somebody spends on an item: not while the page is hidden, and not beyond a minute without any
// key, click, tap, scroll or move of the pointer.
(() => {
  "use strict";
  const labelling = (window.labelling = window.labelling || {});
  const IDLE_MS = 60000;
  const SIGNS_OF_LIFE = ["keydown", "pointerdown", "pointermove", "wheel", "scroll", "touchmove", "input"];

  labelling.clock = () => {
    let spent = 0;
    let since = null; // the last sign of life; null while nothing is counted

    const now = () => performance.now();

    function count() {
      if (since !== null) spent += Math.min(now() - since, IDLE_MS);
      since = document.visibilityState === "hidden" ? null : now();
    }

    for (const name of SIGNS_OF_LIFE) document.addEventListener(name, count, { capture: true, passive: true });
    document.addEventListener("visibilitychange", () => {
      // What was hidden until now does not count; what was seen until now does.
      if (document.visibilityState === "hidden" && since !== null) spent += Math.min(now() - since, IDLE_MS);
      since = document.visibilityState === "hidden" ? null : now();
    });

    return {
      start: (before = 0) => { spent = before; since = document.visibilityState === "hidden" ? null : now(); },
      read: () => { count(); return Math.round(spent); },
    };
  };
})();
