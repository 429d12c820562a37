/** The parts of a document become tabs; without scripts they are boxes to open. The address names the chosen one. */
for (const article of document.querySelectorAll("article:has(.tab)")) {
  const panels = [...article.querySelectorAll(".tab")];
  const list = element("div", { className: "tabs" });
  list.setAttribute("role", "tablist");
  list.setAttribute("aria-label", "Parts of the page");
  const tabs = panels.map((panel, at) => {
    const { title, findings } = panel.dataset;
    const tab = element("button", { type: "button", id: `tab-${panel.id}`, textContent: title });
    if (findings) tab.append(" ", element("b", { textContent: findings, title: "findings" }));
    tab.setAttribute("role", "tab");
    tab.setAttribute("aria-controls", panel.id);
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", tab.id);
    if (at) {
      panel.closest("details").replaceWith(panel);
      panel.prepend(element("h2", { className: "name", textContent: title }));
    }
    // a browser that finds a word of the page in it shows it
    panel.addEventListener("beforematch", () => choose(at));
    tab.addEventListener("click", () => {
      choose(at);
      history.replaceState(null, "", `#${panel.id}`);
      // what takes long comes when it is asked for
      const offer = panel.querySelector("h3 > a.button");
      if (offer) location.assign(offer.href);
    });
    return tab;
  });
  function choose(chosen) {
    tabs.forEach((tab, at) => {
      tab.setAttribute("aria-selected", at === chosen);
      tab.tabIndex = at === chosen ? 0 : -1;
      panels[at].hidden = at === chosen ? false : "until-found";
    });
  }
  function chooseByAddress() {
    const named = document.getElementById(location.hash.slice(1));
    const at = panels.findIndex((panel) => panel.contains(named));
    if (at >= 0 || !location.hash) choose(Math.max(at, 0));
  }
  list.addEventListener("keydown", (event) => {
    const [at, last] = [tabs.indexOf(event.target), tabs.length - 1];
    const next = { ArrowRight: at === last ? 0 : at + 1, ArrowLeft: at ? at - 1 : last, Home: 0, End: last }[event.key];
    if (at < 0 || next === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    choose(next);
    history.replaceState(null, "", `#${panels[next].id}`);
    tabs[next].focus();
  });
  list.append(...tabs);
  panels[0].before(list);
  addEventListener("hashchange", chooseByAddress);
  choose(0);
  chooseByAddress();
}
