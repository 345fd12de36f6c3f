// Leases: what the person looks at, and what the page holds behind it, stay theirs for as long as they look.
(() => {
  "use strict";
  const labelling = (window.labelling = window.labelling || {});

  // `on` hears of lostAhead(), when an item behind the one that is shown has passed on, and of lostFirst().
  labelling.leases = ({ word, desk, isActive, on }) => {
    const tokens = () => desk.ahead().map((card) => `${card.work_item}:${card.token}`).join(",");

    async function beat() {
      const first = desk.first();
      if (!isActive() || document.visibilityState === "hidden" || (!first && !tokens())) return;
      const fields = [["ahead", tokens()]];
      if (first) fields.push(["work_item", first.work_item], ["token", first.token]);
      let body;
      try {
        const headers = { "X-CSRFToken": labelling.csrf() };
        const response = await fetch(word.heartbeat, { method: "POST", body: new URLSearchParams(fields), headers });
        body = await response.json();
      } catch {
        return; // the next beat, or the next answer, will show whether the connection is back
      }
      if (body.gone && body.gone.length) {
        desk.lose(body.gone);
        on.lostAhead();
      }
      if (body.message && first === desk.first()) on.lostFirst(body);
    }

    window.setInterval(beat, Math.max(5, Number(word.leaseSeconds) / 3) * 1000);
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "visible") beat();
    });
    window.addEventListener("pagehide", () => {
      if (!isActive() || !tokens()) return;
      // The item that is shown stays with the person, for a reload; what is behind it goes back.
      const fields = new URLSearchParams({ ahead: tokens(), csrfmiddlewaretoken: labelling.csrf() });
      navigator.sendBeacon(word.release, fields);
    });
  };
})();
