// What the page tells the person: what became of answers, what went wrong, and the same for those who listen.
(() => {
  "use strict";
  const labelling = (window.labelling = window.labelling || {});
  const QUIET_MS = 900; // so long nothing is answered before it is said aloud
  const part = (id) => document.getElementById(id);

  // What a part of the page that the server made says of what was sent; null where it says nothing.
  labelling.saidIn = (parsed) => {
    const line = parsed.getElementById("said");
    return line && { text: line.textContent, trouble: Boolean(line.querySelector(".trouble")) };
  };

  // `itemInWords` gives the text of the item that is shown.
  labelling.teller = ({ word, itemInWords, isLasting, onConnection }) => {
    const troubles = labelling.store(`hypac-troubles-${word.name}`, []);
    const connection = part("connection");

    function tell(text, trouble = false) {
      const line = document.createElement("span");
      line.textContent = text;
      if (trouble) {
        line.className = "trouble";
        aloud(text);
      }
      part("said").replaceChildren(line);
    }

    // "It is back." is a sentence already.
    const sentence = (text) => (/[.!?…]$/.test(text) ? text : `${text}.`);

    function aloud(text) {
      part("announce").textContent = text;
    }

    // Said once the person pauses: at speed nobody could listen to every answer.
    let quiet = 0;
    let savedCount = 0;
    function aloudSoon(savedNow = 0) {
      savedCount += savedNow;
      window.clearTimeout(quiet);
      quiet = window.setTimeout(() => {
        const saved = savedCount > 1 ? `${word.wordSaved} ${savedCount}.` : sentence(part("said").textContent);
        const item = itemInWords();
        if (savedCount) aloud(item ? `${saved} ${word.wordNext} ${item}` : saved);
        savedCount = 0;
      }, QUIET_MS);
    }

    // At once, and in place of what is still to be said of answers before it.
    function aloudNow() {
      window.clearTimeout(quiet);
      savedCount = 0;
      aloud(part("said").textContent);
    }

    // What the server did not take is shown until it was read, also after the page was loaded again.
    function problem(text, answer) {
      troubles.write([...troubles.read(), { id: labelling.randomKey(), text, answer }]);
      showProblems();
    }

    function showProblems() {
      const shown = troubles.read().map(({ id, text, answer }) => {
        const note = document.createElement("div");
        note.className = "note warning problem";
        const line = document.createElement("p");
        line.textContent = answer ? `${text} ${word.wordYourAnswer} ${answer}` : text;
        const button = document.createElement("button");
        button.type = "button";
        button.className = "secondary small";
        button.textContent = word.wordDismiss;
        button.addEventListener("click", () => {
          troubles.write(troubles.read().filter((one) => one.id !== id));
          showProblems();
        });
        note.append(line, button);
        return note;
      });
      part("problems").replaceChildren(...shown);
    }

    // What became of an answer, where its item is before the person no more.
    function tellOf(html, answer) {
      const told = labelling.saidIn(new DOMParser().parseFromString(html, "text/html"));
      if (!told || told.trouble) return problem(told ? told.text : word.wordUnknown, answer);
      tell(told.text);
      aloudSoon(1);
    }

    const TROUBLES = {
      lost: word.wordLost,
      refused: word.wordRefused,
      forbidden: word.wordForbidden,
      loggedOut: word.wordLoggedOut,
      otherPerson: word.wordOtherPerson,
      gone: word.wordGone,
      first: word.wordFirst,
    };
    // Where the browser stores nothing, leaving the page would lose what was not sent.
    const NOT_KEPT = { loggedOut: word.wordLoggedOutHere, otherPerson: word.wordLoggedOutHere };

    // Whoever else is logged in has to log out first: logging in would lead them here, under their name.
    const WAYS_ON = {
      loggedOut: [`${word.login}?next=${encodeURIComponent(word.page)}`, word.wordLogIn],
      otherPerson: [word.projects, word.wordProjects],
      gone: [word.projects, word.wordProjects],
    };

    // `there` is where something is wanted of the person before they go on.
    function troubled(trouble, there) {
      onConnection(false);
      // That an earlier answer was saved would be read as if this one were.
      if (!part("said").querySelector(".trouble")) part("said").replaceChildren();
      const kept = isLasting();
      const shown = [trouble, there, kept].join();
      if (connection.dataset.trouble === shown && !connection.hidden) return;
      connection.dataset.trouble = shown;
      connection.textContent = (kept ? TROUBLES[trouble] : NOT_KEPT[trouble] || word.wordNotKept) || word.wordRefused;
      const way = there ? [there, word.wordThere] : WAYS_ON[trouble];
      if (way) {
        const link = document.createElement("a");
        [link.href, link.textContent] = way;
        if (!kept) link.target = "_blank";
        connection.append(" ", link);
      }
      connection.hidden = false;
    }

    function untroubled() {
      connection.hidden = true;
      onConnection(true);
    }

    showProblems();
    return { tell, tellOf, aloud, aloudSoon, aloudNow, problem, troubled, untroubled, isConnected: () => connection.hidden };
  };

  // How far the person is. Between the server's own counts, what was answered since is added.
  labelling.counts = (area, unsentAnswers) => {
    const format = new Intl.NumberFormat(document.documentElement.lang || undefined);
    const cell = (name) => area.querySelector(`[data-count=${name}]`);
    const whole = (name) => Number(cell(name).textContent.replace(/\D/g, ""));
    let counted = null; // as the server said it last
    let since = 0; // items answered since then

    function show() {
      // A part of the page that the server has just made says more than what was counted before it.
      if (!counted || !cell("today") || !("counted" in cell("today").dataset)) return;
      cell("today").textContent = format.format(counted.today + since);
      cell("waiting").textContent = format.format(Math.max(0, counted.waiting - since));
      for (const name of ["per_hour", "median_seconds"]) {
        if (name in counted) cell(name).textContent = counted[name] === null ? "–" : format.format(counted[name]);
      }
      const bar = area.querySelector("[data-count-bar]");
      bar.value = counted.today + since;
      bar.max = Math.max(1, counted.today + since, counted.today + counted.waiting);
      const undo = area.querySelector("form[data-undo]");
      if (undo && (since || counted.total)) undo.hidden = false;
    }

    // As the server says; without it, as it stands on a part of the page that the server made.
    function take(counts) {
      if (counts) counted = counts;
      else if (cell("today")) counted = { today: whole("today"), waiting: whole("waiting") };
      if (cell("today")) cell("today").dataset.counted = "";
      since = unsentAnswers();
      show();
    }

    return { take, show, oneMore: () => { since += 1; show(); }, text: (number) => format.format(number) };
  };
})();
