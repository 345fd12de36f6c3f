// One tip for all figures: the pointer shows the nearest value, the arrow keys go from value to value.
// The words of a value are its <title>, which serves alone where no script runs.
(() => {
  "use strict";

  const STEPS = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowUp: [1, 0], ArrowDown: [-1, 0] };
  const GAP = 14;

  const tip = document.createElement("div");
  tip.className = "chart-tip";
  tip.setAttribute("role", "status");
  document.body.append(tip);
  let teller = null; // the figure whose value the tip shows

  function middle(shape) {
    const box = shape.getBBox();
    return { shape, x: box.x + box.width / 2, y: box.y + box.height / 2 };
  }

  class Chart {
    constructor(svg) {
      this.svg = svg;
      this.series = [];
      this.words = new Map();
      for (const group of svg.querySelectorAll("[data-series]")) {
        const values = [];
        for (const title of group.querySelectorAll("title")) {
          const shape = title.parentElement;
          values.push(middle(shape));
          this.words.set(shape, title.textContent);
          title.remove(); // else the browser shows it as well
        }
        if (values.length) this.series.push(values);
      }
      if (!this.series.length) return;
      // With arrow keys it is no mere picture; the application role lets a screen reader pass them on.
      svg.setAttribute("role", "application");
      svg.setAttribute("tabindex", "0");
      svg.addEventListener("pointermove", (event) => this.tell(this.nearest(event)));
      svg.addEventListener("pointerdown", (event) => this.tell(this.nearest(event)));
      // A finger that is lifted leaves its value to be read; scrolling, or a tap elsewhere, takes it away.
      svg.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && this.hide());
      svg.addEventListener("pointercancel", () => this.hide());
      svg.addEventListener("focus", () => {
        if (svg.matches(":focus-visible")) this.tell(this.told || this.first());
      });
      svg.addEventListener("blur", () => this.hide());
      svg.addEventListener("keydown", (event) => this.key(event));
    }

    first() {
      const all = this.series.flat();
      return all.find((value) => value.shape.classList.contains("chosen")) || all[0];
    }

    nearest(event) {
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.svg.getScreenCTM().inverse());
      const far = (value) => (value.x - at.x) ** 2 + (value.y - at.y) ** 2;
      return this.series.flat().reduce((best, value) => (far(value) < far(best) ? value : best));
    }

    key(event) {
      if (event.key === "Escape") return this.hide();
      const here = this.told || this.first();
      const row = this.series.findIndex((values) => values.includes(here));
      const values = this.series[row];
      let next;
      if (event.key === "Home") next = values[0];
      else if (event.key === "End") next = values[values.length - 1];
      else if (event.key in STEPS) {
        const [up, along] = STEPS[event.key];
        if (along) next = values[values.indexOf(here) + along] || here;
        else {
          const others = this.series[row + up] || values;
          const far = (value) => Math.abs(value.x - here.x);
          next = others === values ? here : others.reduce((a, b) => (far(b) < far(a) ? b : a));
        }
      } else return undefined;
      event.preventDefault();
      return this.tell(next);
    }

    tell(value) {
      if (value === this.told && tip.textContent) return;
      if (teller !== this) teller?.hide();
      teller = this;
      this.told?.shape.classList.remove("told");
      this.told = value;
      value.shape.classList.add("told");
      tip.textContent = this.words.get(value.shape);
      const place = new DOMPoint(value.x, value.y).matrixTransform(this.svg.getScreenCTM());
      const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
      const left = Math.max(8, Math.min(place.x - tip.offsetWidth / 2, room));
      const above = place.y - tip.offsetHeight - GAP;
      tip.style.left = `${left + window.scrollX}px`;
      tip.style.top = `${(above > 0 ? above : place.y + GAP) + window.scrollY}px`;
    }

    hide() {
      if (teller !== this) return;
      this.told?.shape.classList.remove("told");
      tip.textContent = "";
      teller = null;
    }
  }

  for (const svg of document.querySelectorAll("svg.chart")) new Chart(svg);
  document.addEventListener("pointerdown", (event) => teller?.svg.contains(event.target) || teller?.hide());
})();
