// Labelling: an answer is put into the outbox, the next item is shown at once, and what comes of the answer is
// told when it is known. No answer is lost when the connection, the session or the page is.
(() => {
  "use strict";
  const { labelling } = window;
  const { fieldsOf, valuesOf, wordsOf, answerOf } = labelling.forms;
  const area = document.getElementById("task-area");
  const unsent = document.getElementById("unsent");
  const word = area.dataset;

  const SAVING_AFTER_MS = 400; // what is quicker is not told
  const COUNTS_EVERY = 5; // answers after which the server's own counts are asked for
  const surely = word.surelyRead && new RegExp(word.surelyRead); // the server is asked about an answer unlike it

  const drafts = labelling.drafts(`hypac-drafts-${word.name}`);
  const clock = labelling.clock();
  const seen = new Map(); // items of answers that were not sent, by the key of the answer
  let amending = null; // the key of the unsent answer that is before the person again
  let stopped = false; // another window has taken over
  let answers = 0;
  let asking = false;

  const unsentAnswers = () => outbox.entries().filter((entry) => entry.counts).length;
  const held = () => [...desk.holding(), ...outbox.entries().map((entry) => entry.work_item)];

  const zoom = labelling.zoom(area);
  const counts = labelling.counts(area, unsentAnswers);
  const desk = labelling.desk({
    word, clock, drafts,
    on: {
      shown() {
        zoom.shown();
        finder.shown();
        counts.show();
        teller.aloudSoon();
      },
      brokenImage: () => tell(word.wordImage, true),
    },
  });
  const teller = labelling.teller({
    word,
    itemInWords: () => desk.inWords(),
    isLasting: () => outbox.isLasting(),
    onConnection: (isThere) => desk.wordsForWaiting(isThere ? word.wordWaiting : word.wordWaitingOffline),
  });
  const { tell, problem, troubled, untroubled } = teller;
  const finder = labelling.finder(area, (count) => teller.aloud(`${word.wordFound} ${count}`));

  // --- The outbox -------------------------------------------------------------------------------------------

  let savingTimer = 0;
  const outbox = labelling.outbox({
    name: `hypac-outbox-${word.name}`,
    withEach(entry) {
      const fields = [["person", word.person]];
      if (stopped) return [...fields, ["holding", ""], ["more", "no"]];
      // With nothing to look at, the answer brings what comes next, or the page that says that all is done.
      if (desk.holding().length || outbox.entries().length > 1) fields.push(["holding", held().join(",")]);
      if (entry.counts && answers % COUNTS_EVERY === 0) fields.push(["counts", "yes"]);
      return fields;
    },
    on: {
      changed() {
        const waiting = outbox.entries().length;
        unsent.hidden = !waiting || (waiting < 2 && teller.isConnected() && (!stopped || outbox.isLasting()));
        unsent.querySelector("strong").textContent = counts.text(waiting);
        window.clearTimeout(savingTimer);
        if (waiting) savingTimer = window.setTimeout(() => teller.isConnected() && tell(word.wordSaving), SAVING_AFTER_MS);
      },
      troubled(trouble, there) {
        troubled(trouble, there);
        unsent.hidden = false;
      },
      notTaken(entry, status) {
        untroubled();
        problem(`${word.wordNotTaken} ${status}.`, entry.words);
        after(entry);
      },
      arrived,
    },
  });

  function arrived(entry, { data, html }) {
    untroubled();
    if (html !== undefined) {
      if (stopped) return teller.tellOf(html, entry.words); // the item belongs to another window now
      desk.setBusy(false);
      return show(html, entry);
    }
    if (data.outcome === "stored") {
      tell(data.said.text);
      teller.aloudSoon(1);
    } else {
      problem(data.said.text, entry.words);
      if (entry.kind === "flag") desk.flag(false, entry.work_item);
    }
    desk.receive(data.ahead);
    takeCounts(data.counts);
    after(entry);
  }

  // A page without work was made after whatever is still on its way, and says its counts itself.
  function takeCounts(said) {
    if (said && desk.state() !== "empty") counts.take(said);
  }

  function after(entry) {
    const { wait } = seen.get(entry.key) || {};
    seen.delete(entry.key);
    if (stopped) return;
    if (wait) {
      desk.setBusy(false);
      forward();
    } else if (desk.state() === "waiting" && !outbox.entries().length) {
      ask();
    }
  }

  function show(html, entry = null) {
    const told = desk.swap(html, { withAnswer: entry !== null && !(seen.get(entry.key) || {}).wait });
    const back = !entry || (desk.current() && desk.current().work_item === entry.work_item);
    if (told && told.trouble && !back) problem(told.text, entry.words);
    else if (told) {
      tell(told.text, told.trouble);
      if (entry && !told.trouble) teller.aloudSoon(1);
    }
    if (entry) seen.delete(entry.key);
    counts.take();
    more();
  }

  function forward() {
    amending = null;
    if (!desk.next() && !outbox.entries().length) ask();
  }

  // --- Asking the server ------------------------------------------------------------------------------------

  // What comes next, as a part of the page.
  async function ask() {
    if (asking || stopped) return;
    asking = true;
    const answer = await labelling.send(`${word.page}?person=${word.person}`);
    asking = false;
    if (stopped || desk.state() === "item") return; // it came another way
    if (answer.there && !outbox.entries().length) return window.location.assign(answer.there);
    if (answer.html === undefined) {
      troubled(answer.trouble, answer.there);
      window.setTimeout(() => desk.state() === "waiting" && !outbox.entries().length && ask(), 3000);
      return;
    }
    untroubled();
    const parsed = answer.html.match(/name="work_item" value="(\d+)"/);
    // The server does not know yet of an answer that is on its way; what comes after it is held.
    if (parsed && outbox.entries().some((entry) => entry.work_item === Number(parsed[1]))) return more();
    show(answer.html);
  }

  // Items to hold behind the one that is shown.
  async function more() {
    if (stopped || (desk.state() === "empty" && !outbox.entries().length)) return;
    const fields = [["person", word.person], ["holding", held().join(",")]];
    const first = desk.first();
    if (first) fields.push(["work_item", first.work_item], ["token", first.token]);
    const { data, trouble } = await labelling.send(word.ahead, fields);
    if (trouble === "otherPerson") troubled(trouble);
    if (!data || stopped) return;
    desk.receive(data.ahead);
    // Another window had answered it while this one was being opened.
    if (data.lost && first === desk.current() && desk.state() === "item") forward();
    takeCounts(data.counts);
    if (desk.state() === "waiting" && !outbox.entries().length) ask();
  }

  // --- Giving answers ---------------------------------------------------------------------------------------

  function give(form, button) {
    const fields = fieldsOf(form, button);
    const values = valuesOf(fields);
    const correcting = desk.state() === "correcting";
    if (word.several === "yes") {
      const none = fields.some(([name]) => name === "none");
      if (none === values.length > 0) return tell(none ? word.wordBoth : word.wordNothing, true);
    }
    const card = desk.current();
    const spent = String(clock.read());
    const entry = {
      key: labelling.randomKey(),
      kind: correcting ? "correct" : "submit",
      url: form.getAttribute("action"),
      work_item: card.work_item,
      words: wordsOf(form, fields, word.wordNone),
      fields: fields.map(([name, value]) => [name, name === "lead_time_ms" ? spent : value]),
      counts: !correcting && !amending,
    };
    // Nothing is there to go on with after a correction: the answer to it brings it.
    const wait = correcting ? !desk.first() : surely && !surely.test(values[0] || "");
    entry.fields = entry.fields.filter(([name]) => name !== "idempotency_key");
    entry.fields.push(["idempotency_key", entry.key]);
    seen.set(entry.key, { card, wait, answer: answerOf(fields, word.several === "yes") });
    desk.dropDraft();
    if (amending) {
      entry.fields.push(["amend", "yes"]);
      const put = outbox.replace(amending, entry);
      return done(entry, () => put || outbox.push(entry));
    }
    done(entry, () => outbox.push(entry));
  }

  // Kept first, then what comes next is shown, then it is sent.
  function done(entry, keep) {
    if (entry.counts) {
      answers += 1;
      counts.oneMore();
    }
    if (entry.kind !== "correct") desk.gave(entry.work_item);
    keep();
    amending = null;
    if (seen.get(entry.key).wait) desk.setBusy(true);
    else desk.next();
    outbox.send();
  }

  function skip(form, button) {
    const card = desk.current();
    const entry = {
      key: labelling.randomKey(),
      kind: "skip",
      url: form.getAttribute("action"),
      work_item: card.work_item,
      words: button ? button.firstChild.textContent.trim() : "",
      fields: fieldsOf(form, button),
    };
    seen.set(entry.key, { card, answer: null });
    if (amending) outbox.remove(amending);
    done(entry, () => outbox.push(entry));
  }

  function flag(form) {
    outbox.push({
      key: labelling.randomKey(),
      kind: "flag",
      url: form.getAttribute("action"),
      work_item: desk.current().work_item,
      words: form.querySelector("[name=text]").value,
      fields: fieldsOf(form, null),
    });
    outbox.send();
    desk.flag(true, desk.current().work_item);
    form.querySelector("[name=text]").value = "";
    form.parentElement.open = false;
    form.parentElement.querySelector("summary").focus();
    desk.inSight();
  }

  // --- Going back -------------------------------------------------------------------------------------------

  let goingBack = false;
  async function undo() {
    if (goingBack || stopped || desk.isBusy()) return;
    goingBack = true;
    try {
      if (!(await outbox.flush())) return undoUnsent();
      const before = area.querySelector("form[data-undo] [name=before]");
      const fields = [["person", word.person], ...(before ? [["before", before.value]] : [])];
      if (desk.current()) fields.push(["holding", desk.holding().join(",")]);
      const { data, html, trouble, there } = await labelling.send(word.undo, fields);
      if (stopped) return;
      if (trouble) return troubled(trouble, there);
      if (data) return tell(data.said.text, data.outcome !== "stored");
      // A skipped item that is back is the only one that the person holds now.
      if (/data-state="item"/.test(html)) desk.forget();
      amending = null;
      show(html);
    } finally {
      goingBack = false;
      teller.aloudNow();
    }
  }

  function undoUnsent() {
    const list = outbox.entries().filter((entry) => entry.kind !== "flag");
    const limit = amending ? list.findIndex((entry) => entry.key === amending) : list.length;
    const entry = list[limit - 1];
    const known = entry && seen.get(entry.key);
    if (!known || outbox.isUnderWay(entry.key)) return tell(word.wordNotYet, true);
    if (entry.kind === "skip") {
      outbox.remove(entry.key);
      amending = null;
      desk.back(known.card, null, "");
      return tell(word.wordSkipBack);
    }
    if (entry.kind === "correct") return tell(word.wordNotYet, true);
    amending = entry.key;
    desk.back(known.card, known.answer, word.wordUnsent);
    tell(word.wordBack);
  }

  // Away from a correction, with everything as it was.
  function leave() {
    if (!["correcting", "unsent"].includes(desk.state())) return;
    desk.dropDraft();
    forward();
  }

  // --- Events -----------------------------------------------------------------------------------------------

  const ready = () => !stopped && desk.isReady();
  const tooEarly = () => desk.takeOutEarly() && tell(word.wordEarly, true);

  area.addEventListener("click", (event) => {
    const button = event.target.closest("#label-form button[type=submit], button[name=reason]");
    if (button && !ready()) {
      event.preventDefault();
      tooEarly();
    }
    if (event.target.closest("[data-escape]")) {
      event.preventDefault();
      leave();
    }
  }, true);

  area.addEventListener("submit", (event) => {
    const form = event.target;
    event.preventDefault();
    if (form.matches("[data-undo]")) return undo();
    if (form.matches("[data-stop]")) return stop(form);
    if (!ready()) return tooEarly();
    if (form.id === "label-form") give(form, event.submitter);
    else if (form.closest("#skip")) skip(form, event.submitter);
    else if (form.closest("#flag")) flag(form);
  });

  async function stop(form) {
    if (!(await outbox.flush())) return tell(word.wordStop, true);
    form.submit();
  }

  area.addEventListener("input", desk.draftSoon);

  // The page without work asks by itself (htmx); what it then shows is taken from there. No part of the page is
  // what something in between has answered.
  document.addEventListener("htmx:beforeSwap", ({ detail }) => {
    if (detail.target.id === "task" && !labelling.isPart(detail.xhr.responseText)) detail.shouldSwap = false;
  });
  document.addEventListener("htmx:afterSettle", (event) => {
    if (!event.detail.elt || event.detail.elt.id !== "task") return;
    desk.take();
    counts.take();
    more();
  });

  labelling.suggestion({ area, ready, tooEarly, answerWith: desk.answerWith });
  labelling.keys({
    singleKeys: word.singleKeys === "yes",
    does: { ready, tooEarly, undo, leave, zoom, finder, guidelines: labelling.guidelines() },
  });

  // What the person has answered on another device is before them no longer; what went to others may be.
  function lostFirst({ message, own }) {
    if (!own) return tell(`${message} ${word.wordAnyway}`, true);
    tell(message);
    forward();
  }

  labelling.leases({
    word, desk,
    isActive: () => !stopped && teller.isConnected(),
    on: { lostAhead: more, lostFirst },
  });
  for (const [target, name] of [[document, "visibilitychange"], [window, "pagehide"]]) {
    target.addEventListener(name, desk.draftNow);
  }
  window.addEventListener("beforeunload", (event) => {
    if (!outbox.isLasting() && outbox.entries().length) event.preventDefault();
  });

  // --- Start ------------------------------------------------------------------------------------------------

  labelling.onlyHere(`hypac-labelling-${word.name}`, () => {
    stopped = true;
    const lines = [word.wordElsewhere];
    // The other window cannot see them.
    if (!outbox.isLasting() && outbox.entries().length) lines.push(word.wordStillSending);
    outbox.close();
    desk.forget();
    area.replaceChildren(labelling.stoppedNote(lines, word.wordHere));
  });

  desk.take();
  counts.take();
  const shown = desk.current();
  const isGiven = ({ kind, work_item }) => kind !== "flag" && work_item === shown.work_item;
  if (shown && desk.state() === "item" && outbox.entries().some(isGiven)) {
    desk.gave(shown.work_item); // answered before the page was loaded again
    desk.next();
  }
  more();
  outbox.send();
})();
