"use strict";
// Numbers for people, with at most so many digits that say something.
const digits = (number, most) => Number(number.toPrecision(most)).toLocaleString("en-US", { maximumFractionDigits: 12 });
const scaled = (number, most, units) => {
  const [unit, factor] = units.find(([, factor]) => Math.abs(number) >= factor * 0.999999) || units.at(-1);
  return number === 0 ? "0" : digits(number / factor, most) + unit;
};
const TIMES = [[" s", 1e9], [" ms", 1e6], [" us", 1e3], [" ns", 1]];
const BYTES = [[" TiB", 2 ** 40], [" GiB", 2 ** 30], [" MiB", 2 ** 20], [" KiB", 2 ** 10], [" B", 1]];
const LARGE = [[" G", 1e9], [" M", 1e6], ["", 1]];
const SHOW = {
  share: (number, most) => digits(number * 100, most) + " %",
  ns: (number, most) => scaled(number, most, TIMES),
  seconds: (number, most) => scaled(number * 1e9, most, TIMES),
  bytes: (number, most) => scaled(number, most, BYTES),
  count: (number, most) => scaled(number, most, LARGE),
  figures: (number, most) => scaled(number, most, LARGE),
};
const TIP_DIGITS = 4, TICK_DIGITS = 7;
// The steps of an even axis: 1, 2 and 5 times a power of ten, or of two where bytes are counted.
const STEPS = [];
for (let power = -12; power <= 18; power++) for (const step of [1, 2, 5]) STEPS.push(Number(step + "e" + power));
const WHOLE_STEPS = STEPS.filter(step => step >= 1);
const BYTE_STEPS = Array.from({ length: 60 }, (_, power) => 2 ** power);
const steps = style => style === "bytes" ? BYTE_STEPS : style === "count" ? WHOLE_STEPS : STEPS;
// At most so many of them; a finer step where a coarse one has fewer than two.
function evenTicks(low, high, style, most) {
  let step = steps(style).findIndex(step => (high - low) / step <= most);
  const ticks = step => {
    const size = steps(style)[step], found = [];
    for (let at = Math.ceil(low / size - 1e-9); at <= high / size + 1e-9; at++) found.push(Number((at * size).toPrecision(12)));
    return found;
  };
  while (step > 0 && ticks(step).length < 2) step--;
  return ticks(step);
}
// Powers of ten, with twos and fives between them where there is room; of two for bytes.
function logTicks(low, high, style, most) {
  const within = ticks => ticks.filter(tick => tick >= low * 0.999999 && tick <= high * 1.000001);
  if (style === "bytes") {
    const powers = within(BYTE_STEPS);
    const every = Math.ceil(powers.length / most) || 1;
    return powers.filter((_, at) => at % every === 0);
  }
  const fine = within(style === "count" ? WHOLE_STEPS : STEPS);
  if (fine.length <= most && fine.length >= 2) return fine;
  const tens = within(STEPS.filter((_, at) => at % 3 === 0));
  if (fine.length > most && tens.length >= 2) {
    const every = Math.ceil(tens.length / most);
    return tens.filter((_, at) => at % every === 0);
  }
  if (fine.length > most) return fine.filter((_, at) => at % Math.ceil(fine.length / most) === 0);
  // Less than a factor of two or so: even steps tell more.
  return evenTicks(low, high, style, most);
}

const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const COLOURS = 30;
const DASHES = [[], [8, 4], [2, 3]];
const node = (tag, name, text) => {
  const made = document.createElement(tag);
  if (name) made.className = name;
  if (text !== undefined) made.textContent = text;
  return made;
};

// One chart of the page, drawn anew whenever its axes, the page's width or its colours change.
class Drawing {
  constructor(figure, chart) {
    Object.assign(this, { figure, chart, isLog: { x: chart.x.log, y: chart.y.log }, zoom: null, isHidden: [] });
    this.isBars = chart.form === "bars";
    // Long names stand to the left of lying bars.
    const longest = Math.max(0, ...chart.labels.map(label => label.length));
    this.isLying = this.isBars && (longest > 12 || chart.labels.length * (longest + 2) > 80);
    this.longest = longest;
    // How much of its place a group of bars takes: a few are not as wide as the page.
    this.taken = Math.min(0.8, 0.15 * chart.series.length * chart.labels.length);
    this.ways = node("div", "ways");
    this.box = node("div");
    this.tip = node("div", "tip");
    this.tip.hidden = true;
    this.all = node("button", "", "show all");
    this.all.type = "button";
    this.all.hidden = true;
    this.all.addEventListener("click", () => this.zoomTo(null));
    this.ways.append(this.all);
    if (chart.x.can_be_log) this.addWay("x");
    this.addWay("y");
    figure.prepend(this.ways);
    const hints = ["Drag to zoom."];
    this.isLegend = chart.series.filter(series => !series.is_paper).length > 1;
    if (this.isLegend) hints.push("Click a name to hide it.");
    if (chart.series.some(series => series.is_paper)) hints.push((this.isBars ? "Pale" : "Dashed") + ": what the paper states.");
    if (!chart.y.can_be_log) hints.push("Not all values are above zero, so there is no logarithmic axis.");
    figure.append(this.box, node("p", "hint", hints.join(" ")), this.tip);
    this.draw();
  }

  addWay(axis) {
    const way = node("button", "", "log " + axis);
    way.type = "button";
    way.disabled = !this.chart[axis].can_be_log;
    way.setAttribute("aria-pressed", this.isLog[axis]);
    way.addEventListener("click", () => {
      this.isLog[axis] = !this.isLog[axis];
      way.setAttribute("aria-pressed", this.isLog[axis]);
      this.zoom = null;
      this.draw();
    });
    this.ways.append(way);
  }

  zoomTo(zoom) {
    this.zoom = zoom;
    this.all.hidden = !zoom;
    this.plot.batch(() => ["x", "y"].forEach(axis => this.plot.setScale(axis, { min: 0, max: 1 })));
  }

  // What an axis shows before anybody zooms.
  whole(axis) {
    const { chart } = this;
    if (axis === "x" && chart.labels.length) return [-0.5, chart.labels.length - 0.5];
    const values = axis === "x" ? chart.places : chart.series.flatMap(series => series.values).filter(value => value !== null);
    let [low, high] = [Math.min(...values), Math.max(...values)];
    if (this.isLog[axis]) {
      const margin = (high / low) ** 0.04;
      // The least bar is seen, too.
      if (axis === "y" && this.isBars) return [10 ** Math.floor(Math.log10(low * 0.99)), high * margin];
      return low < high ? [low / margin, high * margin] : [low / 2, high * 2];
    }
    // From zero, but for lines that are all far from it.
    if (axis === "y" && (this.isBars || low < high / 2)) low = Math.min(low, 0);
    // What hardly differs looks as if it hardly did, and needs no more than three digits.
    const least = axis === "y" ? Math.abs(high) * 0.025 : 0;
    const margin = Math.max((high - low) * 0.04, least - (high - low) / 2) || Math.abs(high) / 2 || 1;
    return [low === 0 && axis === "y" ? 0 : low - margin, high === 0 && axis === "y" ? 0 : high + margin];
  }

  scale(axis) {
    const lies = this.isLying ? { ori: axis === "x" ? 1 : 0, dir: axis === "x" ? -1 : 1 } : {};
    return { time: false, distr: this.isLog[axis] ? 3 : 1, ...lies,
      range: () => this.zoom ? this.zoom[axis] : this.whole(axis) };
  }

  axis(axis) {
    const { chart, isLying } = this;
    const { label, style } = chart[axis];
    const isDown = (axis === "x") !== isLying;
    const common = { scale: axis, side: isDown ? 2 : 3, stroke: css("--soft"), font: "12px system-ui", labelFont: "12px system-ui",
      label: label || undefined, labelSize: 20, grid: { stroke: css("--rule"), width: 1 }, ticks: { stroke: css("--rule"), width: 1, size: 4 } };
    if (axis === "x" && chart.labels.length) {
      const cut = isLying ? (this.figure.clientWidth < 480 ? 16 : 30) : 14;
      const short = text => text.length > cut ? text.slice(0, cut - 1) + "\u2026" : text;
      const size = isLying ? Math.min(this.longest, cut) * 7.2 + 18 : 34;
      return { ...common, size, grid: { show: false }, splits: () => chart.places,
        values: (u, splits) => {
          // Where there is no room for all of them, every other one, or fewer.
          const room = isLying ? Infinity : u.bbox.width / devicePixelRatio;
          const every = Math.max(1, Math.ceil(chart.labels.length * (Math.min(this.longest, cut) * 6.5 + 6) / room));
          return splits.map(at => at % every === 0 ? short(chart.labels[at] ?? "") : "");
        }, ...(isLying ? { label: undefined } : {}) };
    }
    const show = SHOW[style];
    const most = pixels => Math.max(2, Math.floor(pixels / (isDown ? 70 : 36)));
    const pixels = u => (isDown ? u.bbox.width : u.bbox.height) / devicePixelRatio;
    const splits = (u, _, low, high) => {
      const ticks = this.isLog[axis] ? logTicks : evenTicks;
      return ticks(low, high, style, most(pixels(u)));
    };
    const longest = (_, values) => 14 + 7 * Math.max(3, ...(values || []).map(value => value.length));
    return { ...common, size: isDown ? 34 : longest, splits, filter: (_, splits) => splits, values: (_, splits) => splits.map(split => show(split, TICK_DIGITS)) };
  }

  series(series, number) {
    const { chart } = this;
    const paint = css("--c" + series.colour % COLOURS);
    const common = { label: series.name, stroke: paint, spanGaps: true, show: !this.isHidden[number],
      class: series.is_paper ? "of-paper" : undefined };
    if (series.is_diagonal) return { ...common, stroke: css("--soft"), width: 1, dash: [4, 4], points: { show: false } };
    if (this.isBars) {
      const width = this.taken / chart.series.length;
      const disp = { x0: { unit: 1, values: () => chart.places.map(at => at - this.taken / 2 + number * width) },
        size: { unit: 1, values: () => chart.places.map(() => width * 0.92) } };
      return { ...common, width: series.is_paper ? 1.5 : 0, fill: paint + (series.is_paper ? "33" : ""),
        paths: uPlot.paths.bars({ disp }), points: { show: false } };
    }
    const few = chart.places.length <= 80;
    const points = { show: few || chart.form === "points", size: series.is_paper || chart.form === "points" ? 9 : 6, width: 1.5, fill: series.is_paper ? css("--paper") : paint };
    if (chart.form === "points") return { ...common, width: 0, paths: () => null, points };
    const dash = series.is_paper ? [5, 4] : DASHES[Math.floor(series.colour / 10) % 3];
    return { ...common, width: series.is_paper ? 1.5 : 2, dash, points };
  }

  // The bar under the cursor, among those of one place.
  barAt(u) {
    const { left, top } = u.cursor;
    const at = u.posToVal(this.isLying ? top : left, "x");
    return Math.floor((at - Math.round(at) + this.taken / 2) / this.taken * this.chart.series.length);
  }

  height() {
    const { chart } = this;
    const bars = chart.labels.length * (chart.series.length * 9 + 9) + 70;
    return this.isLying ? Math.max(160, bars) : 330;
  }

  draw() {
    const { chart, isBars } = this;
    this.plot?.destroy();
    this.tip.hidden = true;
    this.all.hidden = !this.zoom;
    const dist = isBars
      ? (u, number) => this.barAt(u) === number - 1 ? 0 : 1e9
      : (_, number, at, value, cursor) => chart.series[number - 1].is_diagonal ? 1e9 : value - cursor;
    const options = {
      width: Math.max(240, this.figure.clientWidth), height: this.height(),
      scales: { x: this.scale("x"), y: this.scale("y") },
      axes: [this.axis("x"), this.axis("y")],
      series: [{}, ...chart.series.map((series, number) => this.series(series, number))],
      focus: { alpha: 0.2 },
      legend: { live: false, show: this.isLegend },
      cursor: {
        focus: { prox: isBars ? 1e6 : 60, dist }, points: { show: !isBars },
        hover: { skip: [null, undefined], prox: null }, drag: { x: true, y: true, uni: 24, setScale: false },
      },
      hooks: {
        setSelect: [u => this.selected(u)],
        setCursor: [u => this.tell(u)],
        setSeries: [(u, number, what) => {
          if (number && what.show !== undefined) this.show(u, number, what.show);
          if (what.focus !== undefined) this.focus(u, what.focus ? number : null);
        }],
      },
    };
    this.plot = new uPlot(options, [chart.places, ...chart.series.map(series => series.values)], this.box);
    // Double click shows all; the library's own would only reset its scales.
    this.plot.over.addEventListener("dblclick", () => this.zoomTo(null));
    this.plot.over.setAttribute("role", "img");
    this.plot.over.setAttribute("aria-label", `${chart.title} against ${chart.x.label}`);
    this.plot.root.querySelectorAll(".u-legend .u-series").forEach(row => {
      row.tabIndex = 0;
      row.addEventListener("keydown", event => {
        if (event.key === "Enter" || event.key === " ") {
          event.preventDefault();
          row.firstElementChild.click();
        }
      });
    });
  }

  // What a paper says of a series comes and goes with it.
  partner(number) {
    const { series } = this.chart;
    const other = number === null ? -1 : series[number - 1].is_paper ? number - 2 : number;
    return series[other]?.is_paper !== series[number - 1]?.is_paper && series[other]?.colour === series[number - 1]?.colour ? other + 1 : null;
  }

  show(u, number, isShown) {
    this.isHidden[number - 1] = !isShown;
    const other = this.partner(number);
    if (other && u.series[other].show !== isShown) u.setSeries(other, { show: isShown });
  }

  focus(u, number) {
    this.focused = number;
    const other = this.partner(number);
    if (other) u.series[other].alpha = 1;
    this.tell(u);
  }

  selected(u) {
    const { left, top, width, height } = u.select;
    if (width < 4 && height < 4) return;
    const part = (axis, from, length, whole) => {
      if (length < 4) return this.zoom ? this.zoom[axis] : this.whole(axis);
      return [u.posToVal(from, axis), u.posToVal(from + length, axis)].sort((a, b) => a - b);
    };
    const [x, y] = this.isLying ? ["y", "x"] : ["x", "y"];
    const zoom = { [x]: part(x, left, width), [y]: part(y, top, height) };
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.zoomTo(zoom);
  }

  // Says what is under the cursor.
  tell(u) {
    const { chart } = this;
    const number = this.focused;
    const at = number ? u.cursor.idxs?.[number] : null;
    const value = at === null || at === undefined ? null : chart.series[number - 1].values[at];
    if (value === null || value === undefined || !(u.cursor.left >= 0)) {
      this.tip.hidden = true;
      return;
    }
    const series = chart.series[number - 1];
    const place = chart.labels.length ? `${chart.x.label} ${chart.labels[at]}` : SHOW[chart.x.style](chart.places[at], TIP_DIGITS) + " " + chart.x.label;
    this.tip.replaceChildren(node("b", "", series.name), `${SHOW[chart.y.style](value, TIP_DIGITS)} ${chart.y.label}`, node("br"), place);
    this.tip.style.borderLeftColor = css("--c" + series.colour % COLOURS);
    this.tip.hidden = false;
    const over = u.over.getBoundingClientRect();
    const figure = this.figure.getBoundingClientRect();
    const x = over.left - figure.left + u.cursor.left;
    const isRight = x + this.tip.offsetWidth + 16 > figure.width;
    this.tip.style.left = Math.max(0, isRight ? x - this.tip.offsetWidth - 12 : x + 12) + "px";
    this.tip.style.top = Math.max(0, over.top - figure.top + u.cursor.top - this.tip.offsetHeight - 10) + "px";
  }
}

const charts = JSON.parse(document.getElementById("charts").textContent);
const drawings = charts.map((chart, number) =>
  new Drawing(document.querySelector(`figure[data-chart="${number}"]`), chart));
const again = () => drawings.forEach(drawing => drawing.draw());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
let width = innerWidth;
addEventListener("resize", () => {
  if (innerWidth !== width) again();
  width = innerWidth;
});
