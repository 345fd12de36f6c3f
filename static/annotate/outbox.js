// Answers on their way: kept in this browser, sent one after the other in the order in which they were given.
// Each has a key of its own, so that it may arrive any number of times and counts once.
(() => {
  "use strict";
  const labelling = (window.labelling = window.labelling || {});
  const FIRST_WAIT_MS = 2000;
  const LONGEST_WAIT_MS = 15000;
  const LONGEST_REQUEST_MS = 30000; // what is not answered by then is taken for lost
  const MOST_OF_A_LAST_REQUEST = 60000; // bytes that a browser still sends for a page that is being closed

  // Statuses by which the server itself refuses; others come from something in between.
  const TROUBLES = { 400: "notTaken", 413: "notTaken", 401: "loggedOut", 403: "forbidden", 404: "gone" };

  labelling.csrf = () => {
    const name = `${document.querySelector("meta[name=csrf-cookie]").content}=`;
    const cookie = document.cookie.split("; ").find((part) => part.startsWith(name));
    return (cookie && cookie.slice(name.length)) || (document.querySelector("input[name=csrfmiddlewaretoken]") || {}).value || "";
  };

  labelling.isPart = (html) => /<[^>]*\sid="task"/.test(html);

  // Send a form; without fields, ask for the page's part. What comes: {html}, {data}, or {trouble: lost | refused |
  // forbidden | gone | loggedOut | otherPerson | first | notTaken}, with the place where something is wanted of the
  // person `first`. What neither is the page's part nor says what became of a form comes from something in between,
  // such as a proxy: it has taken nothing. A request that is the `last` of a page is sent though the page is closed.
  labelling.send = async (url, fields = null, { last = false } = {}) => {
    const body = fields && new URLSearchParams(fields);
    let response;
    try {
      response = await fetch(url, {
        method: body ? "POST" : "GET",
        body,
        redirect: "manual",
        signal: AbortSignal.timeout(LONGEST_REQUEST_MS),
        keepalive: last && body.toString().length < MOST_OF_A_LAST_REQUEST,
        headers: { "HX-Request": "true", "HX-Target": "task", ...(body && { "X-CSRFToken": labelling.csrf() }) },
      });
      if (response.type === "opaqueredirect") return { trouble: "loggedOut" };
      if (response.ok) {
        const there = response.headers.get("HX-Redirect");
        if (there) return { trouble: "first", there };
        const isJson = (response.headers.get("Content-Type") || "").startsWith("application/json");
        if (!isJson) {
          const html = await response.text();
          return labelling.isPart(html) ? { html } : { trouble: "refused" };
        }
        const data = await response.json();
        if (!("outcome" in data || "ahead" in data)) return { trouble: "refused" };
        return data.outcome === "other_person" ? { trouble: "otherPerson" } : { data };
      }
    } catch {
      return { trouble: "lost" };
    }
    return { trouble: TROUBLES[response.status] || "refused", status: response.status };
  };

  // `withEach` gives further fields at the time of sending. `on` hears of what happens: changed(), arrived(entry,
  // outcome), troubled(trouble, there), notTaken(entry, status).
  labelling.outbox = ({ name, withEach, on }) => {
    const store = labelling.store(name, []);
    let underWay = null; // {key, done: promise}
    let open = true;
    let timer = 0;
    let wait = FIRST_WAIT_MS;

    const entries = () => {
      const kept = store.read();
      return Array.isArray(kept) ? kept : [];
    };

    function write(list) {
      store.write(list);
      on.changed();
    }

    function push(entry) {
      write([...entries(), entry]);
    }

    // `push` and `replace` keep the answer; `send` sends what is kept.
    // Put `entry` in the place of the one with this key; false where that one is on its way or gone.
    function replace(key, entry) {
      if (isUnderWay(key) || !entries().some((one) => one.key === key)) return false;
      write(entries().map((one) => (one.key === key ? entry : one)));
      return true;
    }

    function remove(key) {
      write(entries().filter((one) => one.key !== key));
    }

    const isUnderWay = (key) => underWay !== null && (key === undefined || underWay.key === key);

    function send() {
      window.clearTimeout(timer);
      const first = entries()[0];
      if (underWay || !first || (!open && store.isLasting())) return;
      underWay = { key: first.key, done: attempt(first) };
      on.changed();
    }

    async function attempt(entry) {
      const outcome = await labelling.send(entry.url, [...entry.fields, ...withEach(entry)], { last: true });
      underWay = null;
      const { trouble } = outcome;
      if (trouble && trouble !== "notTaken") {
        timer = window.setTimeout(send, wait);
        wait = Math.min(wait * 1.5, LONGEST_WAIT_MS);
        on.changed();
        return on.troubled(trouble, outcome.there);
      }
      wait = FIRST_WAIT_MS;
      remove(entry.key);
      // The next one is on its way before anything is made of this answer.
      send();
      if (trouble) on.notTaken(entry, outcome.status);
      else on.arrived(entry, outcome);
    }

    // Try now; resolves once nothing is on its way, with whether everything has been sent.
    async function flush() {
      send();
      while (underWay) {
        const { key, done } = underWay;
        await done;
        if (entries().some((entry) => entry.key === key)) break; // that one did not get through
      }
      return entries().length === 0;
    }

    window.addEventListener("online", send);
    return {
      push, replace, remove, send, flush, isUnderWay, entries,
      isLasting: store.isLasting,
      // From now on another window sends what is stored. What it cannot see is sent from here.
      close() {
        open = false;
        if (store.isLasting()) window.clearTimeout(timer);
        else store.leave();
      },
    };
  };
})();
