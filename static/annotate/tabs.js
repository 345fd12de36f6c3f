// One window of a person labels in a project at a time: the one that was opened last. So no item is shown twice,
// and one queue of answers has one sender.
(() => {
  "use strict";
  const labelling = (window.labelling = window.labelling || {});

  // `stop` is called in a window when another one has begun.
  labelling.onlyHere = (name, stop) => {
    if (!("BroadcastChannel" in window)) return;
    const me = labelling.randomKey();
    const channel = new BroadcastChannel(name);
    channel.addEventListener("message", ({ data }) => {
      if (data === me) return;
      channel.close();
      stop();
    });
    channel.postMessage(me);
    window.addEventListener("pageshow", (event) => {
      if (event.persisted) window.location.reload(); // it came back from the browser's memory, its items did not
    });
  };

  // In the place of the item, in a window that has stopped.
  labelling.stoppedNote = (lines, wordHere) => {
    const note = document.createElement("div");
    note.className = "card empty";
    note.setAttribute("role", "alert");
    const shown = lines.map((text) => Object.assign(document.createElement("p"), { textContent: text }));
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: wordHere });
    button.addEventListener("click", () => window.location.reload());
    note.append(...shown, button);
    return note;
  };
})();
