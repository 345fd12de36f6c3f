// What a model answered: taken as the answer as if the person had given it, by the form's own controls.
(() => {
  "use strict";
  const labelling = (window.labelling = window.labelling || {});

  // What is pressed to give this answer, once the form holds it.
  function givenBy(form, value) {
    if (Array.isArray(value) && !value.length) return form.querySelector("button[name=none]");
    const choice = [...form.querySelectorAll("button.choice")].find((button) => button.value === value);
    return choice || form.querySelector("button[data-give]");
  }

  labelling.suggestion = ({ area, ready, tooEarly, answerWith }) => {
    area.addEventListener("click", (event) => {
      const button = event.target.closest("[data-take]");
      if (!button) return;
      event.preventDefault();
      if (!ready()) return tooEarly();
      const form = document.getElementById("label-form");
      const value = JSON.parse(button.dataset.take);
      answerWith({ value, comment: form.querySelector("[name=comment]").value });
      form.requestSubmit(givenBy(form, value));
    });
  };
})();
