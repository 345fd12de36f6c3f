// What every page shares: times in the reader's zone, dropped files.
(() => {
  "use strict";

  const format = new Intl.DateTimeFormat(document.documentElement.lang || undefined, {
    dateStyle: "medium",
    timeStyle: "short",
  });

  // The server writes times, and knows where a day ends, by the zone that this cookie names.
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "";
  if (/^[\w+\/-]+$/.test(zone) && !document.cookie.split("; ").includes(`time_zone=${zone}`)) {
    const safe = location.protocol === "https:" ? "; Secure" : "";
    document.cookie = `time_zone=${zone}; Path=/; Max-Age=31536000; SameSite=Lax${safe}`;
  }

  function localTimes(root) {
    for (const time of root.querySelectorAll("time[datetime]:not([data-local])")) {
      const when = new Date(time.dateTime);
      if (Number.isNaN(when.getTime())) continue;
      time.title = time.textContent;
      time.textContent = format.format(when);
      time.dataset.local = "";
    }
  }

  function dropZones(root) {
    for (const zone of root.querySelectorAll(".drop:not([data-drops])")) {
      const input = zone.querySelector("input[type=file]");
      zone.dataset.drops = "";
      for (const name of ["dragenter", "dragover"]) {
        zone.addEventListener(name, (event) => {
          event.preventDefault();
          zone.classList.add("over");
        });
      }
      zone.addEventListener("dragleave", () => zone.classList.remove("over"));
      zone.addEventListener("drop", (event) => {
        event.preventDefault();
        zone.classList.remove("over");
        if (event.dataTransfer.files.length) {
          input.files = event.dataTransfer.files;
          input.dispatchEvent(new Event("change", { bubbles: true }));
        }
      });
    }
  }

  // A form is sent once: a second click while the first is on its way changes nothing.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (event.defaultPrevented || form.method !== "post" || form.hasAttribute("hx-post")) return;
    if (form.dataset.sent) {
      event.preventDefault();
      return;
    }
    form.dataset.sent = "1";
    form.setAttribute("aria-busy", "true");
  });
  window.addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-sent]")) {
      delete form.dataset.sent;
      form.removeAttribute("aria-busy");
    }
  });

  // Fields of some backends are shown only while one of them is the chosen one.
  function chosenParts(root) {
    for (const select of root.querySelectorAll("select[data-shows]")) {
      const show = () => {
        for (const part of document.querySelectorAll(`[data-shown-by="${select.dataset.shows}"]`)) {
          part.hidden = !part.dataset.value.split(" ").includes(select.value);
        }
      };
      if (!select.dataset.showing) select.addEventListener("change", show);
      select.dataset.showing = "1";
      show();
    }
  }

  // A few pixels made large are to be seen as they are, not blurred.
  function tinyImages(root) {
    for (const image of root.querySelectorAll(".thumb, .item-figure img")) {
      const look = () => image.classList.toggle("tiny", Math.max(image.naturalWidth, image.naturalHeight) < 64);
      if (image.complete) look();
      else image.addEventListener("load", look, { once: true });
    }
  }

  // What can only be scrolled sideways has to be reached by the keyboard too, and says what it is.
  function wideTables(root) {
    for (const part of root.querySelectorAll(".table-scroll")) {
      const table = part.querySelector("table");
      const hides = part.scrollWidth > part.clientWidth && !part.querySelector("a[href], button, input, select");
      if (!hides || !table) {
        part.removeAttribute("tabindex");
        continue;
      }
      const heading = part.closest("section, details, .card")?.querySelector("h2, h3, summary");
      part.tabIndex = 0;
      part.setAttribute("role", "group");
      part.setAttribute("aria-label", (table.caption || heading || document.querySelector("h1")).textContent.trim());
    }
  }
  window.addEventListener("resize", () => wideTables(document));
  document.addEventListener("toggle", (event) => wideTables(event.target), true);

  // A part that is asked for again and again must not take the focus away with it.
  const sameControl = (element) => {
    const leadsTo = element.getAttribute("href") || element.form?.getAttribute("action");
    return [element.tagName, leadsTo, element.name, element.value, element.textContent.trim()].join("|");
  };
  let focused = "";
  document.addEventListener("htmx:beforeSwap", (event) => {
    const part = event.detail.requestConfig.elt;
    const polls = (part.getAttribute("hx-trigger") || "").startsWith("every");
    focused = polls && part.contains(document.activeElement) ? sameControl(document.activeElement) : "";
  });
  document.addEventListener("htmx:afterSettle", () => {
    if (!focused || document.activeElement !== document.body) return;
    const controls = [...document.querySelectorAll("main :is(a[href], button, select, input, summary)")];
    controls.find((element) => sameControl(element) === focused)?.focus({ preventScroll: true });
    focused = "";
  });

  // On a phone the names of a project's pages do not fit side by side: the one that is open is to be seen.
  const here = document.querySelector(".project-nav [aria-current]");
  if (here) {
    const nav = here.closest(".project-nav");
    nav.scrollLeft += here.getBoundingClientRect().left - (nav.clientWidth - here.offsetWidth) / 2;
  }

  // A form that came back with an error: to what is said above it, from where links lead to the fields.
  function toErrors(root) {
    const summary = root.querySelector("main .form-summary");
    if (!summary) return;
    summary.focus({ preventScroll: true });
    summary.scrollIntoView({ block: "center" });
  }
  toErrors(document);
  document.addEventListener("htmx:afterSettle", (event) => {
    // Not of what is asked while somebody types.
    if (event.detail.requestConfig?.triggeringEvent?.type === "submit") toErrors(document);
  });

  function freshen(root) {
    tinyImages(root);
    localTimes(root);
    dropZones(root);
    chosenParts(root);
    wideTables(root);
  }
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-print]")) window.print();
  });

  freshen(document);
  document.addEventListener("htmx:load", (event) => freshen(event.detail.elt));
})();
