// Charts of series: a crosshair with what is known of a position, a zoom by a drag, and links of positions. All texts are
// made by the server, or by what wrote the file; nothing is judged or computed here.

const SVG = "http://www.w3.org/2000/svg";
const ROUND = [1, 2, 2.5, 5, 10];
const DRAG = 6; // pixels from which on a press is a drag

function shape(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

/** A name that fits below an axis. */
function fitted(name) {
  const letters = [...name];
  return letters.length > 14 ? `${letters.slice(0, 7).join("")}…${letters.slice(-6).join("")}` : name;
}

async function enhanceChart(figure) {
  const drawing = figure.querySelector(".frame > svg:last-child");
  const area = drawing.querySelector(".area");
  const [head, list] = figure.querySelectorAll(".readout > *");
  const outputs = [...list.querySelectorAll("b")];
  const data = await unpacked(figure.querySelector("script").textContent.trim());
  const height = Number(drawing.getAttribute("height"));
  const last = data.x.length - 1;
  // everything that has a place along the width
  const placed = [...drawing.children]
    .flatMap((each) => (each.matches("a") ? [...each.children] : [each]))
    .flatMap((each) => ["x", "cx"].map((key) => ({ each, key, base: parseFloat(each.getAttribute(key)) })))
    .filter(({ each, base }) => !Number.isNaN(base) && !each.matches("rect"));
  const labels = placed.filter(({ each }) => each.matches("text:not(.word)"));
  const cross = shape("rect", { class: "cross", width: 1, y: 12, height: height - 36 });
  const dots = data.series.map((_, at) => shape("circle", { class: `ring s${at}`, r: 6 }));
  const chosen = shape("rect", { class: "chosen", y: 0, height });
  const pin = shape("rect", { class: "pin", width: 2, y: 12, height: height - 36 });
  const zoomedLabels = shape("g", {});
  const hint = element("p", { className: "note hint" });
  const back = element("button", { type: "button", textContent: "Show all", hidden: true });
  let [from, to] = [0, 100];
  let at = Number(figure.dataset.at);
  let pinned = null;
  let start = null;

  const shownAt = (x) => ((x - from) / (to - from)) * 100;
  const place = (mark, x) => {
    const shown = shownAt(x);
    mark.setAttribute(mark.tagName === "circle" ? "cx" : "x", `${shown}%`);
    mark.toggleAttribute("hidden", shown < -0.01 || shown > 100.01);
  };

  function show(position, isFocused = true) {
    at = Math.max(0, Math.min(last, position));
    head.textContent = data.heads[at] || data.names[at];
    outputs.forEach((output, series) => { output.textContent = data.series[series].says[at]; });
    cross.toggleAttribute("hidden", !isFocused);
    if (isFocused) place(cross, data.x[at]);
    dots.forEach((dot, series) => {
      const y = data.series[series].y[at];
      dot.toggleAttribute("hidden", !isFocused || y === null);
      if (!isFocused || y === null) return;
      dot.setAttribute("cy", y);
      place(dot, data.x[at]);
    });
  }

  /** The position nearest to where the pointer is, and that place in per cent of the whole. */
  function pointed(event) {
    const box = drawing.getBoundingClientRect();
    const share = Math.max(0, Math.min(1, (event.clientX - box.left) / box.width));
    const x = from + share * (to - from);
    let nearest = 0;
    data.x.forEach((other, position) => {
      if (Math.abs(other - x) < Math.abs(data.x[nearest] - x)) nearest = position;
    });
    return { x, nearest };
  }

  /** Labels below a part of the axis: round times, or the names that have room. */
  function relabel() {
    const isWhole = from === 0 && to === 100;
    labels.forEach(({ each }) => each.toggleAttribute("hidden", !isWhole));
    zoomedLabels.replaceChildren();
    if (isWhole) return;
    const width = drawing.getBoundingClientRect().width;
    const written = (x, text) => {
      const made = shape("text", { x: `${shownAt(x)}%`, y: height - 6, "text-anchor": "middle" });
      made.textContent = text;
      zoomedLabels.append(made);
    };
    if (data.seconds !== null) {
      const least = (data.seconds * (to - from)) / 100 / 5;
      const power = 10 ** Math.floor(Math.log10(least));
      const step = power * ROUND.find((part) => part * power >= least);
      const digits = Math.max(0, 1 - Math.floor(Math.log10(step)));
      for (let time = Math.ceil((from * data.seconds) / 100 / step) * step; time <= (to * data.seconds) / 100; time += step) {
        written((time / data.seconds) * 100, `${Number(time.toFixed(digits))} s`);
      }
      return;
    }
    let free = Infinity;
    for (let position = last; position >= 0; position -= 1) {
      const [x, text] = [data.x[position], fitted(data.names[position])];
      const half = (text.length * 7 + 10) / 2;
      const middle = (shownAt(x) / 100) * width;
      if (x < from || x > to || middle + half > free) continue;
      written(x, text);
      free = middle - half;
    }
  }

  function zoomHere(left, right) {
    [from, to] = right - left < 0.05 ? [0, 100] : [Math.max(0, left), Math.min(100, right)];
    area.setAttribute("viewBox", `${from} 0 ${to - from} ${height}`);
    for (const { each, key, base } of placed) {
      const shown = shownAt(base);
      each.setAttribute(key, `${shown}%`);
      each.toggleAttribute("hidden", shown < -0.01 || shown > 100.01);
    }
    back.hidden = from === 0 && to === 100;
    relabel();
    if (pinned !== null) place(pin, data.x[pinned]);
    show(at, drawing.matches(":focus"));
  }

  /** Shows the positions between two, on the page of that part where there is one. */
  function zoom(left, right) {
    const within = data.x.map((x, position) => [x, position]).filter(([x]) => x >= left && x <= right);
    if (!figure.dataset.zoom) {
      zoomHere(left, right);
      return;
    }
    if (!within.length) return;
    const positions = within.map(([, position]) => position);
    const address = new URL(figure.dataset.zoom, location.href);
    address.searchParams.set("from", data.names[Math.min(...positions)]);
    address.searchParams.set("to", data.names[Math.max(...positions)]);
    location.assign(address);
  }

  /** Leads to the page of the versions of the bar that a drag went over; a click moves the part that is shown. */
  function chooseRange(range) {
    const count = data.all.length;
    const length = Number(range.querySelector(".part").getAttribute("width")) / 100 * count;
    let began = null;
    const placeOf = (event) => {
      const box = range.getBoundingClientRect();
      return Math.max(0, Math.min(count - 1, Math.floor(((event.clientX - box.left) / box.width) * count)));
    };
    range.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      began = { place: placeOf(event), pixel: event.clientX };
      range.setPointerCapture(event.pointerId);
    });
    range.addEventListener("pointercancel", () => { began = null; });
    range.addEventListener("pointerup", (event) => {
      if (began === null) return;
      let ends = [began.place, placeOf(event)].sort((one, other) => one - other);
      if (Math.abs(event.clientX - began.pixel) < DRAG) {
        const first = Math.max(0, Math.min(count - Math.round(length), Math.round(began.place - length / 2)));
        ends = [first, first + Math.round(length) - 1];
      }
      began = null;
      const address = new URL(figure.dataset.zoom, location.href);
      address.searchParams.set("from", data.all[ends[0]]);
      address.searchParams.set("to", data.all[ends[1]]);
      location.assign(address);
    });
  }

  /** The first of two versions is pinned, the second leads to the diff of both. */
  function pair(position) {
    if (!figure.dataset.pair) return;
    if (pinned === null || pinned === position) {
      pinned = pinned === position ? null : position;
      pin.toggleAttribute("hidden", pinned === null);
      if (pinned !== null) place(pin, data.x[pinned]);
      const field = document.querySelector("form[action='/act'] input[name=version]");
      if (field && pinned !== null) field.value = data.names[pinned];
      tell();
      return;
    }
    const address = new URL(figure.dataset.pair, location.href);
    for (const one of [Math.min(pinned, position), Math.max(pinned, position)]) {
      address.searchParams.append("side", data.names[one]);
    }
    location.assign(address);
  }

  function tell() {
    const ways = ["Point at the chart, or focus it and press ← →, to read a position"];
    if (data.links.length) ways.push(`click or Enter: ${figure.dataset.click || "more on it"}`);
    if (figure.dataset.pair) ways.push("Shift with click or Enter on two: their diff");
    ways.push("drag, or + and -: zoom; Esc: show all");
    hint.textContent = pinned === null
      ? `${ways.join("; ")}.`
      : `${data.names[pinned]} is chosen: Shift with click or Enter on another one shows their diff; Esc takes it back.`;
  }

  function release() {
    start = null;
    chosen.setAttribute("hidden", "");
  }

  /** The way back: a pinned version first, then the zoom of this page, then the page of all. */
  function giveUp() {
    if (pinned !== null) pair(pinned);
    else if (from !== 0 || to !== 100) zoomHere(0, 100);
    else if (figure.dataset.zoom && new URL(location.href).searchParams.has("from")) location.assign(figure.dataset.zoom);
  }

  drawing.addEventListener("pointermove", (event) => {
    const { x, nearest } = pointed(event);
    show(nearest);
    if (start === null || Math.abs(event.clientX - start.pixel) < DRAG) return;
    const [left, right] = [Math.min(start.x, x), Math.max(start.x, x)];
    chosen.removeAttribute("hidden");
    chosen.setAttribute("x", `${shownAt(left)}%`);
    chosen.setAttribute("width", `${shownAt(right) - shownAt(left)}%`);
  });
  drawing.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || event.pointerType === "touch") return;
    start = { x: pointed(event).x, pixel: event.clientX };
    drawing.setPointerCapture(event.pointerId);
  });
  drawing.addEventListener("pointerup", (event) => {
    if (start === null) return;
    const [{ x, nearest }, began] = [pointed(event), start];
    release();
    if (Math.abs(event.clientX - began.pixel) >= DRAG) zoom(Math.min(began.x, x), Math.max(began.x, x));
    else if (event.shiftKey) pair(nearest);
    else if (data.links[nearest]) {
      if (event.ctrlKey || event.metaKey) open(data.links[nearest]);
      else location.assign(data.links[nearest]);
    }
  });
  drawing.addEventListener("pointercancel", release);
  drawing.addEventListener("pointerleave", () => { if (start === null) show(at, drawing.matches(":focus")); });
  // a press is answered above, also that on the link of a point; what a finger does is a click
  drawing.addEventListener("click", (event) => { if (event.pointerType !== "touch" && event.detail) event.preventDefault(); });
  drawing.addEventListener("dragstart", (event) => event.preventDefault());
  drawing.addEventListener("focus", () => show(at));
  drawing.addEventListener("blur", () => show(at, false));
  drawing.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const middle = data.x[at];
    const quarter = (to - from) / 4;
    const steps = { ArrowLeft: at - 1, ArrowRight: at + 1, PageUp: at - 10, PageDown: at + 10, Home: 0, End: last };
    if (event.key in steps) show(steps[event.key]);
    else if (event.key === "Enter" && event.shiftKey) pair(at);
    else if (event.key === "Enter" && data.links[at]) location.assign(data.links[at]);
    else if (event.key === "+") zoom(middle - quarter, middle + quarter);
    else if (event.key === "-" && (from !== 0 || to !== 100)) zoomHere(middle - 4 * quarter, middle + 4 * quarter);
    else if (event.key === "-" || event.key === "Escape") giveUp();
    else return;
    event.preventDefault();
  });
  back.addEventListener("click", () => zoomHere(0, 100));

  for (const mark of [chosen, cross, pin, ...dots]) mark.setAttribute("hidden", "");
  area.before(chosen);
  drawing.append(zoomedLabels, cross, pin, ...dots);
  const range = figure.querySelector(".range");
  if (range && figure.dataset.zoom) chooseRange(range);
  // one stop of the Tab key for all points: the arrows move between them
  drawing.setAttribute("tabindex", "0");
  drawing.setAttribute("role", "group");
  for (const one of drawing.querySelectorAll("a")) one.setAttribute("tabindex", "-1");
  head.parentElement.setAttribute("aria-live", "polite");
  tell();
  figure.append(hint, back);
  figure.dataset.ready = "";
}

for (const figure of document.querySelectorAll(".plot")) enhanceChart(figure);
