// Reading the forms of the page.
(() => {
  "use strict";
  const labelling = (window.labelling = window.labelling || {});
  const SHOWN = 60; // characters of an answer that a message repeats

  function short(text) {
    const line = text.trim().replace(/\s+/g, " ");
    return line.length > SHOWN ? `${line.slice(0, SHOWN)}…` : line;
  }

  // Names with values; a name may come several times. `button` is the one that was pressed.
  function fieldsOf(form, button) {
    const fields = [...new FormData(form).entries()].filter(([name]) => name !== "csrfmiddlewaretoken");
    if (button && button.name) fields.push([button.name, button.value]);
    return fields;
  }

  const valuesOf = (fields) => fields.filter(([name]) => name === "value").map(([, value]) => value);

  // The answer as it is named to the person.
  function wordsOf(form, fields, none) {
    const values = valuesOf(fields);
    const choices = [...form.querySelectorAll(".choice")];
    const named = choices.filter((choice) => values.includes((choice.querySelector("input") || choice).value));
    if (named.length) return named.map((choice) => choice.querySelector(".name").textContent.trim()).join(", ");
    return values.length ? short(values.join(", ")) : none;
  }

  // The answer in the form in which the page shows it again.
  const answerOf = (fields, several) => ({
    value: several ? valuesOf(fields) : valuesOf(fields)[0],
    comment: (fields.find(([name]) => name === "comment") || [])[1],
  });

  labelling.forms = { fieldsOf, valuesOf, wordsOf, answerOf };
})();
