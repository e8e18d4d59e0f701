"use strict";
// Comfort on top of pages that work without it: suggestions while typing, parts that load later, progress.
(function () {
  const base = document.body.dataset.run ? "/runs/" + encodeURIComponent(document.body.dataset.run) : "";

  // Control characters and directional overrides are written out, as everywhere.
  function inert(text) {
    return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]/gu,
      (c) => "\\u" + c.codePointAt(0).toString(16).padStart(4, "0"));
  }
  function cut(text) { const letters = Array.from(text); return letters.length > 80 ? letters.slice(0, 79).join("") + "…" : text; }
  function made(tag, kind, text) {
    const element = document.createElement(tag);
    if (kind) { element.className = kind; }
    if (text !== undefined) { element.textContent = text; }
    return element;
  }

  // What stands for a hit in a field: the name that people read, or what tells it from its namesakes.
  function typed(hit) { return hit.ambiguous || hit.name.length > 80 || inert(hit.name) !== hit.name ? hit.reference : hit.name; }
  function target(hit) {
    return hit.kind === "entity" ? base + "/entity?name=" + encodeURIComponent(hit.reference) :
      base + "/question?relation=" + encodeURIComponent(hit.reference);
  }

  // A field that suggests while one types (the combobox pattern of ARIA).
  let fields = 0;
  function suggest(input) {
    const kind = input.dataset.suggest, id = "suggestions-" + (fields += 1);
    const list = made("ul");
    list.id = id;
    list.hidden = true;
    list.setAttribute("role", "listbox");
    list.setAttribute("aria-label", "Suggestions");
    input.parentElement.append(list);
    Object.entries({ role: "combobox", "aria-autocomplete": "list", "aria-controls": id, "aria-expanded": "false", autocomplete: "off" })
      .forEach(([name, value]) => input.setAttribute(name, value));
    let hits = [], chosen = -1, waiting = null, asked = null;

    function close() { list.hidden = true; chosen = -1; input.setAttribute("aria-expanded", "false"); input.removeAttribute("aria-activedescendant"); }
    function mark(index) {
      chosen = index;
      Array.from(list.children).forEach((item, i) => item.setAttribute("aria-selected", String(i === index)));
      if (index >= 0) { input.setAttribute("aria-activedescendant", id + "-" + index); list.children[index].scrollIntoView({ block: "nearest" }); }
    }
    function pick(index) {
      const hit = hits[index];
      if (kind === "any") { location.assign(target(hit)); return; }
      input.value = typed(hit);
      close();
      input.dispatchEvent(new Event("change", { bubbles: true }));
    }
    function show(found) {
      hits = found;
      list.replaceChildren(...hits.map(function (hit, i) {
        const item = made("li");
        item.id = id + "-" + i;
        item.setAttribute("role", "option");
        item.setAttribute("aria-selected", "false");
        const name = made("bdi", "long", cut(inert(hit.name)));
        const about = hit.name !== hit.label ? cut(inert(hit.label)) : kind === "any" ? hit.kind : "";
        item.append(name, made("span", "kind", about));
        item.addEventListener("mousedown", function (event) { event.preventDefault(); pick(i); });
        return item;
      }));
      list.hidden = !hits.length;
      input.setAttribute("aria-expanded", String(!list.hidden));
      chosen = -1;
    }
    async function ask() {
      if (asked) { asked.abort(); }
      const text = input.value.trim();
      if (!text) { close(); return; }
      asked = new AbortController();
      const only = kind === "any" ? "" : "&kind=" + kind;
      try {
        const answer = await fetch("/api" + base + "/search?limit=8&q=" + encodeURIComponent(text.slice(0, 200)) + only, { signal: asked.signal });
        if (answer.ok && document.activeElement === input) { show((await answer.json()).hits.slice(0, 12)); }
      } catch (error) { if (error.name !== "AbortError") { close(); } }
    }
    input.addEventListener("input", function () { clearTimeout(waiting); waiting = setTimeout(ask, 60); });
    input.addEventListener("blur", close);
    input.addEventListener("keydown", function (event) {
      if (list.hidden) { return; }
      const last = hits.length - 1;
      if (event.key === "ArrowDown") { mark(chosen >= last ? 0 : chosen + 1); }
      else if (event.key === "ArrowUp") { mark(chosen <= 0 ? last : chosen - 1); }
      else if (event.key === "Escape") { close(); }
      else if (event.key === "Enter" && chosen >= 0) { pick(chosen); }
      else { return; }
      event.preventDefault();
    });
  }
  document.querySelectorAll("[data-suggest]").forEach(suggest);

  // A part of the page that takes longer to compute comes when it is ready, into the room that is kept for it.
  document.querySelectorAll("[data-load]").forEach(async function (place) {
    try {
      const answer = await fetch(place.dataset.load);
      const text = await answer.text();
      if (!answer.ok) { throw new Error(answer.status); }
      place.innerHTML = text;
    } catch {
      place.replaceChildren(made("p", "message error", "This could not be computed. Load the page again."));
    }
    place.removeAttribute("aria-busy");
    place.classList.remove("placeholder");
  });

  // Work in the background: how far it is; when it ends, the page is loaded again to show what came of it.
  document.querySelectorAll("[data-progress]").forEach(function (place) {
    const bar = place.querySelector("progress"), words = place.querySelector(".words");
    async function look() {
      try {
        const found = await (await fetch(place.dataset.progress)).json();
        if (found.state !== "running") { location.reload(); return; }
        bar.max = Math.max(found.total, 1);
        bar.value = found.done;
        words.textContent = found.done.toLocaleString("en") + " of " + found.total.toLocaleString("en") + ", " + Math.round(found.seconds) + " s";
      } catch { words.textContent = "The server does not answer."; }
      setTimeout(look, 700);
    }
    setTimeout(look, 300);
  });

  // "/" goes to the search, as on many sites.
  document.addEventListener("keydown", function (event) {
    const search = document.querySelector("main input[type=search]") || document.querySelector("input[type=search]");
    if (event.key === "/" && search && !/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) {
      event.preventDefault();
      search.focus();
    }
  });
})();
