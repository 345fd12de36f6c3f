// What the page keeps in this browser: answers that were not sent, texts that were not finished. Where the
// browser stores nothing (full, or forbidden), it is kept for as long as the page is open.
(() => {
  "use strict";
  const labelling = (window.labelling = window.labelling || {});

  labelling.store = (name, empty) => {
    let memory = null; // only where the browser refused to store it
    let shared = true; // until what is stored under this name is another window's

    function read() {
      if (memory !== null) return memory;
      try {
        return JSON.parse(localStorage.getItem(name)) ?? empty;
      } catch {
        return empty;
      }
    }

    function write(value) {
      if (!shared) {
        memory = value;
        return;
      }
      const nothing = Object.keys(value).length === 0;
      try {
        if (nothing) localStorage.removeItem(name);
        else localStorage.setItem(name, JSON.stringify(value));
        memory = null;
      } catch {
        memory = value;
      }
    }

    return { read, write, isLasting: () => memory === null, leave: () => { shared = false; } };
  };

  // Texts and ticks that were not given yet, by work item, for a week.
  labelling.drafts = (name) => {
    const WEEK_MS = 7 * 24 * 3600 * 1000;
    const MOST = 50;
    const store = labelling.store(name, {});

    const get = (id) => store.read()[id] || null;

    function put(id, draft) {
      const kept = Object.entries(store.read()).filter(([key, { at }]) => key !== id && Date.now() - at < WEEK_MS);
      kept.sort(([, one], [, other]) => other.at - one.at);
      if (draft) kept.unshift([id, { ...draft, at: Date.now() }]);
      store.write(Object.fromEntries(kept.slice(0, MOST)));
    }

    return { get, put, drop: (id) => get(id) && put(id, null) };
  };

  // A name that nobody else uses; randomUUID is there on encrypted connections alone.
  labelling.randomKey = () =>
    [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
})();
