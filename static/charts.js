// Figures: Chart.js draws what each page carries as JSON. What a value says stands in one tip, which the pointer
// and the arrow keys move, and which is read out. Where no script runs, the tables stay open instead.
(() => {
  "use strict";

  const STEPS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
  const GAP = 14;
  const DASHES = [[], [7, 3], [2, 3], [9, 3, 2, 3]];
  const SHAPES = ["circle", "triangle", "rectRot", "rect"];
  const MUTED = ["guide", "reach"]; // told by the pointer, but no place that the keys go to

  const tip = document.createElement("div");
  tip.className = "chart-tip";
  tip.setAttribute("role", "status");
  document.body.append(tip);
  let teller = null; // the figure whose value the tip shows

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const byOrder = (tipped) => tipped.find((one) => one.raw.chosen) || tipped[0];

  function said(unit, labels) {
    return (value) => {
      if (unit === "rank") return labels[value];
      if (unit === "percent") return `${Number((value * 100).toFixed(2))}\u00a0%`;
      return Number(value.toPrecision(4)).toLocaleString("en");
    };
  }

  function scale(axis) {
    return {
      type: axis.logarithmic ? "logarithmic" : "linear",
      min: axis.low ?? undefined,
      max: axis.high ?? undefined,
      title: { display: true, text: axis.title, color: colour("--pico-muted-color"), font: { size: 12 } },
      grid: { color: axis.unit === "rank" ? "transparent" : colour("--hy-line") },
      border: { color: colour("--pico-muted-color") },
      afterBuildTicks: (built) => {
        if (axis.marks.length) built.ticks = axis.marks.map((value) => ({ value }));
        if (axis.unit === "rank") built.ticks = axis.labels.map((_, value) => ({ value }));
      },
      ticks: {
        callback: said(axis.unit, axis.labels),
        color: colour("--pico-muted-color"),
        font: { size: 12 },
        autoSkipPadding: 14,
        maxTicksLimit: 8,
        maxRotation: 0,
        precision: axis.unit === "whole" ? 0 : undefined,
      },
    };
  }

  // How large a cell is: the library gives the place of the axes once they are laid out.
  const inCell = (context) => {
    const { chartArea: area, scales } = context.chart;
    if (!area) return 1;
    const cells = scales.x.max - scales.x.min;
    return Math.min(area.width, area.height) / cells / 2;
  };

  function looks(look, number) {
    const ink = colour("--pico-h1-color");
    const strong = colour("--pico-primary");
    const bad = colour("--hy-bad");
    const surface = colour("--hy-surface");
    const line = [ink, strong, colour("--hy-info"), colour("--hy-warn")][number % 4];
    const chosen = (yes, no) => (context) => (context.raw?.chosen ? yes : no);
    const point = { backgroundColor: line, borderColor: line, pointHoverBorderColor: strong, pointHoverBorderWidth: 3 };
    return {
      line: {
        ...point,
        showLine: true,
        borderWidth: 1.8,
        borderDash: DASHES[number % 4],
        pointStyle: SHAPES[number % 4],
        pointRadius: chosen(6, 3),
        pointHoverRadius: 6,
        pointBackgroundColor: chosen(surface, line),
        pointBorderWidth: chosen(3, 1),
      },
      guide: { borderColor: bad, backgroundColor: bad, showLine: true, borderWidth: 1.3, borderDash: [5, 4], pointRadius: 0, pointHoverRadius: 0, pointStyle: "line" },
      reach: { borderColor: line, showLine: true, borderWidth: 2, pointRadius: 0, pointHoverRadius: 0 },
      chain: { ...point, backgroundColor: ink, borderColor: ink, showLine: true, borderWidth: 1.6, pointRadius: 2.6, pointHoverRadius: 5 },
      chosen: { ...point, backgroundColor: surface, borderColor: strong, borderWidth: 3.5, pointRadius: 7, pointHoverRadius: 8 },
      others: { ...point, backgroundColor: "transparent", borderColor: bad, borderWidth: 2, pointRadius: 5, pointHoverRadius: 7, pointStyle: "triangle" },
      passes: { ...point, backgroundColor: colour("--hy-feasible"), borderColor: "transparent", pointStyle: "rect", pointRadius: (c) => inCell(c) * Math.SQRT2 * 0.94, pointHoverRadius: (c) => inCell(c) * Math.SQRT2 },
      fails: { ...point, borderColor: colour("--pico-muted-color"), borderWidth: 1, pointStyle: "crossRot", pointRadius: (c) => inCell(c) * 0.55, pointHoverRadius: (c) => inCell(c) },
    }[look];
  }

  // The library draws no intervals: each is a line of two points, and a gap before the next.
  function reaches(one, number) {
    const ends = one.points
      .filter((point) => point.low !== null)
      .flatMap((point) => [{ ...point, y: point.low }, { ...point, y: point.high }, { x: NaN, y: NaN }]);
    return ends.length ? [{ label: "", look: "reach", data: ends, clip: 8, ...looks("reach", number) }] : [];
  }

  function datasets(series) {
    const drawn = series.map((one, number) => ({ label: one.name, look: one.look, data: one.points, clip: 8, ...looks(one.look, number) }));
    return [...drawn, ...series.flatMap(reaches)];
  }

  function options(data) {
    return {
      animation: false,
      maintainAspectRatio: false,
      layout: { padding: { right: 12, top: 4 } },
      interaction: { mode: "nearest", intersect: false, axis: "xy" },
      scales: { x: scale(data.x), y: scale(data.y) },
      plugins: {
        legend: {
          position: "bottom",
          onClick: null,
          labels: {
            usePointStyle: true,
            boxHeight: 7,
            color: colour("--pico-color"),
            font: { size: 12 },
            filter: (entry) => entry.text !== "",
            generateLabels: (chart) =>
              Chart.defaults.plugins.legend.labels.generateLabels(chart).map((entry) => ({ ...entry, ...inLegend(chart.data.datasets[entry.datasetIndex], entry) })),
          },
        },
        tooltip: { enabled: false, external: ({ chart, tooltip }) => chart.$figure?.told(tooltip) },
      },
    };
  }

  // In the legend every sign is of one size, and a line shows how it is dashed.
  function inLegend(dataset, entry) {
    const filled = dataset.look === "passes" ? dataset.backgroundColor : entry.strokeStyle;
    return { lineWidth: Math.max(dataset.borderWidth || 1, 1.5), lineDash: dataset.look === "guide" ? dataset.borderDash : [], fillStyle: dataset.look === "chosen" ? dataset.backgroundColor : filled };
  }

  class Figure {
    constructor(canvas) {
      this.canvas = canvas;
      this.data = JSON.parse(document.getElementById(canvas.dataset.figure).textContent);
      canvas.closest("[hidden]")?.removeAttribute("hidden");
      this.draw();
      canvas.addEventListener("focus", () => canvas.matches(":focus-visible") && this.tell(this.last || this.first()));
      canvas.addEventListener("blur", () => this.hide());
      canvas.addEventListener("keydown", (event) => this.key(event));
    }

    draw() {
      this.chart?.destroy();
      Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
      this.chart = new Chart(this.canvas, { type: "scatter", data: { datasets: datasets(this.data.series) }, options: options(this.data) });
      this.chart.$figure = this;
      this.read = this.chart.data.datasets.map((one, row) => ({ row, look: one.look, points: one.data })).filter((one) => !MUTED.includes(one.look));
    }

    first() {
      const row = this.read.find((one) => one.points.some((point) => point.chosen)) || this.read[0];
      return [row.row, Math.max(row.points.findIndex((point) => point.chosen), 0)];
    }

    key(event) {
      if (event.key === "Escape") return this.hide();
      const [row, at] = this.last || this.first();
      const here = this.read.find((one) => one.row === row);
      const point = here.points[at];
      let next;
      if (event.key === "Home") next = [row, 0];
      else if (event.key === "End") next = [row, here.points.length - 1];
      else if (event.key === "PageDown") next = this.beside(here, point, 1);
      else if (event.key === "PageUp") next = this.beside(here, point, -1);
      else if (!(event.key in STEPS)) return undefined;
      else {
        const [across, up] = STEPS[event.key];
        if (here.look === "passes" || here.look === "fails") next = this.cell(point.x + across, point.y + up);
        else if (up) next = this.beside(here, point, -up);
        else if (here.points[at + across]) next = [row, at + across];
      }
      event.preventDefault();
      return this.tell(next || [row, at]);
    }

    // The nearest value of the line before or after this one.
    beside(here, point, step) {
      const other = this.read[this.read.indexOf(here) + step];
      if (!other) return undefined;
      const far = (one) => (one.x - point.x) ** 2 + (other.look === "passes" || other.look === "fails" ? (one.y - point.y) ** 2 : 0);
      return [other.row, other.points.indexOf(other.points.reduce((a, b) => (far(b) < far(a) ? b : a)))];
    }

    cell(x, y) {
      for (const one of this.read) {
        if (one.look !== "passes" && one.look !== "fails") continue;
        const at = one.points.findIndex((point) => point.x === x && point.y === y);
        if (at >= 0) return [one.row, at];
      }
      return undefined;
    }

    tell(place) {
      const active = place ? [{ datasetIndex: place[0], index: place[1] }] : [];
      this.chart.setActiveElements(active);
      this.chart.tooltip.setActiveElements(active, { x: 0, y: 0 });
      this.chart.render();
    }

    hide() {
      if (teller === this) this.tell(null);
    }

    // Called by the library whenever what is pointed at, or chosen by a key, is another value.
    told(tooltip) {
      if (!tooltip.opacity || !tooltip.dataPoints?.length) {
        if (teller === this) tip.textContent = "";
        if (teller === this) teller = null;
        return;
      }
      if (teller !== this) teller?.hide();
      teller = this;
      const one = byOrder(tooltip.dataPoints);
      if (!MUTED.includes(one.dataset.look)) this.last = [one.datasetIndex, one.dataIndex];
      if (tip.textContent !== one.raw.tip) tip.textContent = one.raw.tip;
      const box = this.canvas.getBoundingClientRect();
      const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
      const left = Math.max(8, Math.min(box.left + one.element.x - tip.offsetWidth / 2, room));
      const above = box.top + one.element.y - tip.offsetHeight - GAP;
      tip.style.left = `${left + window.scrollX}px`;
      tip.style.top = `${(above > 0 ? above : box.top + one.element.y + GAP) + window.scrollY}px`;
    }
  }

  const figures = [...document.querySelectorAll("canvas[data-figure]")].map((canvas) => new Figure(canvas));
  for (const table of document.querySelectorAll("details.figure-table")) table.open = false;
  const redraw = () => figures.forEach((figure) => figure.draw());

  // A finger that is lifted leaves its value to be read; a tap elsewhere takes it away.
  document.addEventListener("pointerdown", (event) => event.target === teller?.canvas || teller?.hide());
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  // Paper is white, whatever the screen is.
  window.addEventListener("beforeprint", () => {
    document.documentElement.dataset.theme = "light";
    redraw();
  });
  window.addEventListener("afterprint", () => {
    delete document.documentElement.dataset.theme;
    redraw();
  });
})();
