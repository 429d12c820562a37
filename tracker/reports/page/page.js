"use strict";
// Sorting, filtering and unfolding of tables. Numbers are read from what the cells say, so that no number is stored twice.

const STEP = 500;
const SIZES = {
  ns: 1, us: 1e3, ms: 1e6, s: 1e9, B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40,
};
const NUMBER = /^[+-]?[\d,]*\.?\d+(?:e[+-]?\d+)?/;

/** [rank, key] of a cell: numbers first, then words, then what is missing. */
function sortKey(text) {
  const last = text.split(" → ").pop().replace(/^[▲▼?±<\s]+/, "").replace(/^x(?=\d)/, "");
  const found = NUMBER.exec(last);
  if (found) {
    const unit = /^\s*([A-Za-z]+)/.exec(last.slice(found[0].length));
    return [0, Number(found[0].replaceAll(",", "")) * ((unit && SIZES[unit[1]]) || 1)];
  }
  return text === "" || text === "-" ? [2, ""] : [1, text.toLowerCase()];
}

function compared([rank, key], [otherRank, other], direction) {
  if (rank !== otherRank) return rank - otherRank;
  return (key < other ? -1 : key > other ? 1 : 0) * direction;
}

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

/** A row of packed data as an element. */
function rowOf({ tone, below, address, marks, cells }, belowAt) {
  const row = element("tr", { className: tone });
  cells.forEach((text, place) => {
    const inside = address && place === belowAt ? element("a", { href: address, textContent: text }) : text;
    const cell = element("td", {}, inside);
    if (marks[place] !== "-") cell.className = marks[place];
    if (place === belowAt && below) cell.append(element("small", { textContent: below }));
    row.append(cell);
  });
  return row;
}

async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

/** What a row says, cell by cell, and how it becomes an element. */
function known(row) {
  const cells = [...row.cells].map((cell) => ([...cell.childNodes]
    .find((node) => node.nodeType === 3 || node.tagName === "A")?.textContent ?? "").trim());
  return { cells, tone: row.className, whole: row.textContent.toLowerCase(), element: () => row };
}

/** The rows of packed data, which has their parts by column. */
function packedRows([tones, belows, addresses, marks, ...columns], belowAt) {
  return tones.map((tone, at) => {
    const cells = columns.map((column) => column[at]);
    const row = { tone, below: belows[at], address: addresses[at], marks: marks[at], cells };
    let made = null;
    return { ...row, whole: [...cells, row.below].join(" ").toLowerCase(), element: () => (made ??= rowOf(row, belowAt)) };
  });
}

function enhance(table) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const holder = table.parentElement;
  const packed = holder.nextElementSibling?.matches("script") ? holder.nextElementSibling : null;
  const count = Number(table.dataset.count);
  const rows = [...body.rows].map(known);
  const isSortable = "sortable" in table.dataset;
  let shown = Number(table.dataset.shown);
  let words = "";
  let isTonedOnly = false;
  let order = null; // { place, direction }
  let loading = null;

  const more = element("button", { type: "button" });
  const further = element("p", { className: "further" }, more);
  const state = element("span", { role: "status" });

  function load() {
    if (!packed) return Promise.resolve();
    loading ??= unpacked(packed.textContent.trim()).then((found) => {
      rows.push(...packedRows(found, Number(table.dataset.below)));
    });
    return loading;
  }

  function draw() {
    let chosen = rows;
    if (words || isTonedOnly) {
      chosen = rows.filter((row) => row.whole.includes(words) && (!isTonedOnly || /[wbg]/.test(row.tone)));
    }
    if (order) {
      const keyed = chosen.map((row) => [sortKey(row.cells[order.place] ?? ""), row]);
      chosen = keyed.sort((a, b) => compared(a[0], b[0], order.direction)).map(([, row]) => row);
    }
    const isWhole = !words && !isTonedOnly;
    const total = isWhole ? count : chosen.length;
    body.replaceChildren(...chosen.slice(0, shown).map((row) => row.element()));
    further.hidden = total <= shown;
    more.textContent = total - shown > STEP
      ? `Show ${STEP} more of ${total.toLocaleString("en")} rows`
      : `Show all ${total.toLocaleString("en")} rows`;
    state.textContent = isWhole ? "" : `${total.toLocaleString("en")} of ${count.toLocaleString("en")} rows`;
  }

  async function all() {
    await load();
    shown = Infinity;
    draw();
  }

  more.addEventListener("click", async () => {
    await load();
    shown = shown + STEP >= count ? count : shown + STEP;
    draw();
  });

  if (isSortable) {
    heads.forEach((head, place) => {
      if (head.tagName !== "TH" || head.className === "r") return;
      const button = element("button", { type: "button", textContent: head.textContent });
      head.replaceChildren(button);
      button.addEventListener("click", async () => {
        await load();
        const first = rows.some((row) => sortKey(row.cells[place] ?? "")[0] === 0) ? -1 : 1;
        if (order?.place !== place) order = { place, direction: first };
        else order = order.direction === first ? { place, direction: -first } : null;
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        if (order) head.setAttribute("aria-sort", order.direction > 0 ? "ascending" : "descending");
        draw();
      });
    });
  }
  if (count > Number(table.dataset.shown)) {
    const search = element("input", { type: "search", placeholder: "Filter rows" });
    search.setAttribute("aria-label", `Filter ${holder.getAttribute("aria-label")}`);
    search.addEventListener("input", async () => {
      words = search.value.toLowerCase().trim();
      await load();
      draw();
    });
    const tools = element("div", { className: "tools" }, search);
    if (heads.some((head) => head.textContent === "verdict")) {
      const box = element("input", { type: "checkbox" });
      box.addEventListener("change", async () => {
        isTonedOnly = box.checked;
        await load();
        draw();
      });
      tools.append(element("label", {}, box, "findings only"));
    }
    tools.append(state);
    holder.before(tools);
    (packed ?? holder).after(further);
    draw();
  }
  return all;
}

const unfold = [...document.querySelectorAll("table")].map(enhance);
for (const code of document.querySelectorAll(".command code")) {
  const button = element("button", { type: "button", textContent: "Copy" });
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(code.textContent);
    button.textContent = "Copied";
  });
  code.after(button);
}
addEventListener("beforeprint", () => {
  for (const one of document.querySelectorAll("details")) one.open = true;
  for (const one of unfold) one();
});
/** A click on a box of a flame makes it as wide as the page; a click on one that is, shows all again. */
for (const flame of document.querySelectorAll(".flame")) {
  const boxes = [...flame.querySelectorAll(":scope > svg")].map((box) => ({
    box, x: parseFloat(box.getAttribute("x")), width: parseFloat(box.getAttribute("width")),
  }));
  let zoomed = null;
  for (const one of boxes) {
    one.box.addEventListener("click", () => {
      zoomed = zoomed === one ? null : one;
      const [start, whole] = zoomed ? [zoomed.x, zoomed.width] : [0, 100];
      for (const { box, x, width } of boxes) {
        const [left, right] = [x, x + width].map((at) => Math.min(100, Math.max(0, ((at - start) / whole) * 100)));
        box.setAttribute("x", `${left}%`);
        box.setAttribute("width", `${right - left}%`);
        const [text, says] = [box.querySelector("text"), box.querySelector("title").textContent];
        text.textContent = right - left > 3 ? says.slice(0, says.lastIndexOf(": ")) : "";
      }
    });
  }
}
/** The steps of a run that Perfetto can show: of the button, and of each call of a list, which is selected there. */
for (const button of document.querySelectorAll("[data-perfetto]")) {
  const { perfetto, trace, title } = button.dataset;
  button.hidden = false;
  button.addEventListener("click", () => openTrace(new URL(perfetto), trace, title, button.nextElementSibling));
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href*='/cut.json.gz?'][href*='#ts=']");
    if (!link || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const [step, selected] = link.getAttribute("href").split("#");
    const [ts, dur] = ["ts", "dur"].map((name) => BigInt(new URLSearchParams(selected).get(name)));
    const address = new URL(perfetto);
    const beside = dur || 1000n;
    address.hash = `!/?ts=${ts}&dur=${dur}&visStart=${ts - beside}&visEnd=${ts + dur + beside}`;
    const number = new URLSearchParams(step.split("?")[1]).get("step");
    openTrace(address, step, `${title.split(",")[0]}, step ${number}`, button.nextElementSibling);
  });
}
/** Opens Perfetto, which fetches nothing from here: once it answers, it is sent the trace. */
async function openTrace(address, trace, title, status) {
  const { origin } = address;
  const other = open(address.href);
  if (!other) {
    status.textContent = "The browser blocked the window: allow it, or download the trace";
    return;
  }
  status.textContent = `Cutting the step, and waiting for ${origin}`;
  const ready = new Promise((resolve) => {
    const asking = setInterval(() => (other.closed ? clearInterval(asking) : other.postMessage("PING", "*")), 50);
    addEventListener("message", function heard({ source, data, origin: from }) {
      if (source !== other || from !== origin || data !== "PONG") return;
      clearInterval(asking);
      removeEventListener("message", heard);
      resolve();
    });
  });
  const response = await fetch(trace).catch(() => ({ status: "no answer" }));
  if (!response.ok) {
    other.close();
    status.textContent = `The step cannot be cut (${response.status}): download says why`;
    return;
  }
  const buffer = await response.arrayBuffer();
  await ready;
  other.postMessage({ perfetto: { buffer, title } }, origin);
  status.textContent = "";
}
/** While somebody writes into the search, what may be meant is listed below it; Enter goes to what was chosen, or is meant. */
for (const field of document.querySelectorAll("[data-hits]")) {
  const list = element("ul", { id: "hits", className: "hits", hidden: true });
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Hits");
  field.after(list);
  const roles = { role: "combobox", "aria-autocomplete": "list", "aria-controls": "hits", "aria-expanded": "false" };
  for (const [name, value] of Object.entries(roles)) field.setAttribute(name, value);
  let hits = [];
  let chosen = -1;
  let asked = 0;
  let waiting = 0;

  function show(found) {
    hits = found;
    // what is all of a name is meant
    chosen = hits.length && hits[0][3] ? 0 : -1;
    list.replaceChildren(...hits.map(([name, what], place) => {
      const row = element("li", { id: `hit-${place}` }, name, element("small", { textContent: what }));
      row.setAttribute("role", "option");
      row.addEventListener("mousedown", (event) => { event.preventDefault(); location.href = hits[place][2]; });
      return row;
    }));
    list.hidden = !hits.length;
    field.setAttribute("aria-expanded", String(!list.hidden));
    mark();
  }

  function mark() {
    [...list.children].forEach((row, place) => row.setAttribute("aria-selected", String(place === chosen)));
    if (chosen < 0) field.removeAttribute("aria-activedescendant");
    else field.setAttribute("aria-activedescendant", `hit-${chosen}`);
  }

  async function ask() {
    const number = ++asked;
    const words = field.value.trim();
    const response = words ? await fetch(`${field.dataset.hits}?q=${encodeURIComponent(words)}`).catch(() => null) : null;
    const found = response?.ok ? await response.json() : [];
    // an answer that comes late is of older words
    if (number === asked && document.activeElement === field) show(found);
  }

  field.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(ask, 120);
  });
  field.addEventListener("blur", () => show([]));
  field.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && hits.length) {
      chosen = (chosen + step + hits.length) % hits.length;
      mark();
    } else if (event.key === "Enter" && chosen >= 0) {
      location.href = hits[chosen][2];
    } else if (event.key === "Escape" && hits.length) {
      show([]);
    } else {
      return;
    }
    event.preventDefault();
  });
}
/** Keys of every page, unless somebody is writing. */
const KEYS = [
  ["/", "search"], ["j", "next row"], ["k", "row before"], ["Enter", "open the row"], ["g b", "board"], ["?", "these keys"],
];
let row = null;
let isGoing = false;

function goTo(direction) {
  const rows = [...document.querySelectorAll("tbody tr")].filter((one) => one.checkVisibility() && one.querySelector("a:not(.word)"));
  if (!rows.length) return;
  const place = rows.indexOf(row);
  const next = place < 0 ? 0 : Math.min(rows.length - 1, Math.max(0, place + direction));
  row = rows[next];
  row.querySelector("a:not(.word)").focus();
  row.scrollIntoView({ block: "nearest" });
}

function showKeys() {
  const found = document.querySelector("dialog.keys");
  if (found) {
    found.close();
    return;
  }
  const rows = KEYS.map(([key, what]) => element("li", {}, element("kbd", { textContent: key }), ` ${what}`));
  const close = element("button", { type: "button", textContent: "Close" });
  const dialog = element("dialog", { className: "keys" }, element("h2", { textContent: "Keys" }), element("ul", {}, ...rows), close);
  dialog.setAttribute("aria-label", "Keys");
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

addEventListener("keydown", (event) => {
  const field = document.querySelector("nav input[type=search]");
  const isShortcut = event.ctrlKey || event.metaKey || event.altKey;
  if (isShortcut || event.target.matches("input, textarea, select")) return;
  const wasGoing = isGoing;
  isGoing = event.key === "g";
  const board = document.querySelector("nav a[href='/']");
  if (event.key === "/" && field) {
    field.focus();
    field.select();
  } else if (event.key === "j") goTo(1);
  else if (event.key === "k") goTo(-1);
  else if (event.key === "?") showKeys();
  else if (event.key === "b" && wasGoing && board) board.click();
  else return;
  event.preventDefault();
});
/** A button copies the text that it names, as it stands on the page. */
for (const button of document.querySelectorAll("[data-copies]")) {
  // without https a browser has no clipboard, except for pages of this machine
  button.hidden = !navigator.clipboard;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copies).textContent);
    button.nextElementSibling.textContent = "Copied";
  });
}
/** A page with the state of now is loaded again each minute, at the same place, unless somebody works on it. */
for (const button of document.querySelectorAll("[data-refresh]")) {
  let isInUse = false;
  for (const kind of ["input", "click"]) addEventListener(kind, () => { isInUse = true; });
  button.hidden = false;
  button.addEventListener("click", () => location.reload());
  setInterval(() => {
    if (!isInUse && !document.hidden && getSelection().isCollapsed) location.reload();
  }, 60_000);
}
/** A page that takes over half a second to come says that it works; a file is saved, and the page stays as it is. */
let savesFile = false;
addEventListener("click", ({ target }) => {
  const link = target.closest("a[href]");
  savesFile = Boolean(link) && /\.[a-z]+$/.test(link.pathname);
}, true);
addEventListener("beforeunload", () => {
  if (savesFile) return;
  setTimeout(() => {
    const sign = element("p", { className: "working", textContent: "Working …" });
    sign.setAttribute("role", "status");
    document.body.prepend(sign);
  }, 500);
});
addEventListener("pagehide", () => document.querySelector(".working")?.remove());
