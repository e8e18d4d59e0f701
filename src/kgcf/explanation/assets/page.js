"use strict";
// Draws the paths of the explanation: every path has a line of its own, so an edge that several travel has as many strands.
(function () {
  const explanation = JSON.parse(document.getElementById("explanation").textContent);
  const items = Array.from(document.querySelectorAll("ol.paths li"));
  const buttons = Array.from(document.querySelectorAll("button.path"));
  const panel = document.getElementById("graph");
  const hint = document.getElementById("hint");
  const resting = hint.textContent;
  const NAME = 60, WORD = 16; // characters of a name, and of a string without a space, before they are cut or broken
  const STRAND = 7, RELATION = 26; // distances between the lines of an edge, and between the edges of a pair

  // Control characters and directional overrides are written out, as everywhere; an ambiguous name has its label behind it.
  function inert(text) {
    return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]/gu,
      (c) => "\\u" + c.codePointAt(0).toString(16).padStart(4, "0"));
  }
  function shown(named) { return inert(named.ambiguous ? named.name + " (" + named.label + ")" : named.name); }
  function cut(text, length) {
    const letters = Array.from(text);
    return letters.length > length ? letters.slice(0, length - 1).join("") + "…" : text;
  }
  // A name for the canvas: cut, and strings without a space may be broken (the library breaks at a zero-width space).
  function written(text) {
    return cut(text, upright() ? NAME / 2 : NAME).replace(new RegExp("\\S{" + WORD + "}(?=\\S{4})", "gu"), (run) => run + "\u200b");
  }

  function ends(edge) { return edge.inverse ? [edge.tail, edge.head] : [edge.head, edge.tail]; }
  function key(edge) { return JSON.stringify([ends(edge)[0].label, edge.relation.label, ends(edge)[1].label]); }
  // How wide a path is: what the score loses without it, or what its edges weigh.
  function strength(path) { return Math.abs(path.effect ? path.effect.drop : path.weight); }
  function mean(values) { return values.reduce((a, b) => a + b, 0) / values.length; }

  // Where an entity stands: its share of the way on the paths through it, and the mean of their lanes.
  function positions() {
    const middle = (explanation.paths.length - 1) / 2;
    const found = new Map();
    explanation.paths.forEach(function (path, lane) {
      [path.edges[0].head].concat(path.edges.map((edge) => edge.tail)).forEach(function (entity, i) {
        const position = found.get(entity.label) || { name: shown(entity), ways: [], lanes: [] };
        position.ways.push(i / path.edges.length);
        position.lanes.push(lane);
        found.set(entity.label, position);
      });
    });
    const all = Array.from(found, function ([label, position]) {
      const way = mean(position.ways);
      const end = way === 0 || way === 1;
      return { label: label, name: position.name, end: end, way: way, lane: end ? middle : mean(position.lanes) };
    });
    separate(all);
    const first = Math.min(...all.map((entity) => entity.lane));
    all.forEach(function (entity) { entity.lane -= first; });
    return all;
  }
  // Entities of nearly the same column keep a distance of most of a lane.
  function separate(all) {
    const columns = new Map();
    all.forEach(function (entity) {
      const column = Math.round(entity.way * 8);
      columns.set(column, (columns.get(column) || []).concat([entity]));
    });
    columns.forEach(function (column) {
      column.sort((a, b) => a.lane - b.lane);
      for (let i = 1; i < column.length; i++) { column[i].lane = Math.max(column[i].lane, column[i - 1].lane + 0.8); }
    });
  }

  // Paths run from left to right where there is room, else from top to bottom; the panel is as high as they need.
  const entities = positions();
  const lanes = Math.max(...entities.map((entity) => entity.lane), 1);
  const longest = Math.max(...explanation.paths.map((path) => path.edges.length), 1);
  function upright() { return panel.clientWidth < 600; }
  function within(low, value, high) { return Math.max(low, Math.min(value, high)); }
  function setHeight() { panel.style.height = (upright() ? within(380, 120 * longest + 80, 900) : within(260, 100 * lanes + 110, 760)) + "px"; }
  function position(entity) {
    const width = panel.clientWidth, height = panel.clientHeight - 80;
    return upright() ? { x: Math.max(66, (width - 110) / lanes) * entity.lane, y: height * entity.way } :
      { x: Math.max(560, width - 140) * entity.way, y: Math.max(70, Math.min(height / lanes, 130)) * entity.lane };
  }
  setHeight();
  function nodes() {
    return entities.map((entity) => ({ position: position(entity),
      data: { id: entity.label, name: entity.name, written: written(entity.name), end: entity.end ? 1 : 0 } }));
  }

  // One strand for every step of every path. The strands of a triple lie side by side, the triples of a pair further apart.
  function strands() {
    const triples = new Map();
    explanation.paths.forEach(function (path, lane) {
      path.edges.forEach(function (edge, step) {
        const found = triples.get(key(edge)) || { edge: edge, steps: [] };
        found.steps.push({ path: lane, step: step, importance: edge.importance, strength: strength(path) });
        triples.set(key(edge), found);
      });
    });
    const pairs = new Map();
    triples.forEach(function (triple) {
      const pair = JSON.stringify([triple.edge.head.label, triple.edge.tail.label].sort());
      pairs.set(pair, (pairs.get(pair) || []).concat([triple]));
    });
    return Array.from(pairs.values()).flatMap(bundle);
  }
  function bundle(triples) {
    const width = triples.reduce((sum, triple) => sum + STRAND * (triple.steps.length - 1), RELATION * (triples.length - 1));
    let across = bend(triples[0].edge) - width / 2;
    return triples.flatMap(function (triple) {
      const lines = triple.steps.map((step, i) => strand(triple, step, across + STRAND * i, i === triple.steps.length >> 1));
      across += STRAND * (triple.steps.length - 1) + RELATION;
      return lines;
    });
  }
  // How far the lines between two entities swerve to the side, so that they do not run through a third one.
  function bend(edge) {
    const labels = [edge.head.label, edge.tail.label].sort();
    const [from, to] = labels.map((label) => position(entities.find((entity) => entity.label === label)));
    const others = entities.filter((entity) => !labels.includes(entity.label)).map(position);
    const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
    const side = { x: -(to.y - from.y) / length, y: (to.x - from.x) / length };
    function room(swerve) {
      return Math.min(...[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9].flatMap(function (share) {
        const out = 4 * share * (1 - share) * swerve;
        const x = from.x + share * (to.x - from.x) + out * side.x, y = from.y + share * (to.y - from.y) + out * side.y;
        return others.map((other) => Math.hypot(other.x - x, other.y - y));
      }), 1000);
    }
    const up = side.y > 0 ? -1 : 1; // names stand below
    const tried = [0, 30, -30, 50, -50, 75, -75].map((swerve) => up * swerve);
    return tried.find((swerve) => room(swerve) > 32) ?? tried.reduce((best, swerve) => (room(swerve) > room(best) ? swerve : best));
  }
  function strand(triple, step, across, labelled) {
    const strongest = Math.max(...explanation.paths.map(strength), 1e-12);
    const [source, target] = ends(triple.edge);
    const numbers = triple.steps.length > 1 ? " · " + triple.steps.map((s) => s.path + 1).join(", ") : "";
    return { data: { id: "path " + step.path + " " + step.step, source: source.label, target: target.label,
      relation: triple.edge.relation.label, name: shown(triple.edge.relation), path: step.path, step: step.step, edge: triple.edge,
      written: labelled ? cut(shown(triple.edge.relation), upright() ? 16 : 28) + numbers : "", steps: triple.steps, dash: items[step.path].dataset.dash,
      width: 1.8 + 2.7 * step.strength / strongest,
      across: 2 * across * (source.label < target.label ? 1 : -1) } }; // a curve bends by half of its control point's distance
  }

  // Colours come from the style sheet, which knows whether the screen is dark.
  function color(name, element) { return getComputedStyle(element || document.documentElement).getPropertyValue(name).trim(); }
  function pathColor(edge) { return color("--path", items[edge.data("path")]); }
  function look() {
    const small = upright();
    return [
      { selector: "node", style: { label: "data(written)", "font-size": small ? 11 : 14, "text-wrap": "wrap",
        "text-max-width": small ? 96 : 150, "text-valign": "bottom", "text-margin-y": 4, width: small ? 16 : 22, height: small ? 16 : 22,
        "background-color": color("--node"), color: color("--ink"), "text-background-color": color("--canvas"),
        "text-background-opacity": 0.8, "text-background-padding": 1 } },
      { selector: "node[end = 1]", style: { "background-color": color("--ink"), width: small ? 22 : 30, height: small ? 22 : 30,
        "font-weight": "bold" } },
      { selector: "edge", style: { label: "data(written)", "font-size": small ? 9 : 11, color: color("--soft"), width: "data(width)",
        "curve-style": "unbundled-bezier", "control-point-distances": "data(across)", "control-point-weights": 0.5,
        "line-style": "data(dash)", "line-color": pathColor, "target-arrow-color": pathColor, "target-arrow-shape": "triangle",
        "text-rotation": "autorotate", "text-background-color": color("--canvas"), "text-background-opacity": 0.9,
        "text-background-padding": 2, "z-index": (edge) => (edge.data("written") ? 2 : 1) } },
      { selector: ".removed", style: { opacity: 0.1 } },
      { selector: ".faded", style: { opacity: 0.12 } },
    ];
  }

  const drawn = cytoscape({
    container: panel, elements: { nodes: nodes(), edges: items.length ? strands() : [] }, style: look(),
    layout: { name: "preset", padding: 24 }, maxZoom: 4, minZoom: 0.05, wheelSensitivity: 0.3,
  });
  function fit() { drawn.fit(undefined, 24); }
  function redraw() {
    setHeight();
    drawn.resize();
    nodes().concat(strands()).forEach(function (element) { drawn.getElementById(element.data.id).data(element.data); });
    nodes().forEach(function (node) { drawn.getElementById(node.data.id).position(node.position); });
    drawn.style(look());
    fit();
  }
  window.addEventListener("resize", redraw);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  document.getElementById("fit").addEventListener("click", fit);

  // Switches: the score without every subset of the paths was computed before; bit i stands for path i.
  const switches = items.map((item) => item.querySelector("input"));
  const score = document.getElementById("what-if"), bar = document.querySelector("#what-if-bar > span");
  function chance(p) { return p >= 0.0005 || p === 0 ? p.toFixed(3) : p.toExponential(0); }
  function listed(numbers) { return numbers.length < 2 ? numbers.join("") : numbers.slice(0, -1).join(", ") + " and " + numbers[numbers.length - 1]; }
  function removed() { return switches.flatMap((box, i) => (box && !box.checked ? [i] : [])); }
  function rescore() {
    const gone = removed();
    const found = explanation.subsets[gone.reduce((sum, i) => sum + 2 ** i, 0)];
    const which = gone.length === 0 ? " with all paths" : " without path" + (gone.length > 1 ? "s " : " ") + listed(gone.map((i) => i + 1));
    score.textContent = chance(found.probability) + which + (found.reached ? "" : "; no path is left");
    bar.style.width = (100 * found.probability).toFixed(1) + "%";
    items.forEach((item, i) => item.classList.toggle("removed", gone.includes(i)));
    drawn.edges().forEach((edge) => edge.toggleClass("removed", gone.includes(edge.data("path"))));
  }
  switches.forEach((box) => box && box.addEventListener("change", rescore));
  window.addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((part) => { part.open = true; }));

  let chosen = -1;
  function choose(lane) {
    chosen = lane === chosen ? -1 : lane;
    [items, buttons].forEach((all) => all.forEach((item, i) => item.classList.toggle("chosen", i === chosen)));
    drawn.elements().removeClass("faded");
    if (chosen >= 0) {
      const kept = drawn.edges().filter((edge) => edge.data("path") === chosen);
      drawn.elements().not(kept.union(kept.connectedNodes())).addClass("faded");
    }
  }
  items.forEach(function (item, lane) {
    item.addEventListener("click", (event) => { if (event.target !== switches[lane]) { choose(lane); } });
    item.addEventListener("keydown", (event) => { if (event.key === "Enter") { choose(lane); } });
  });
  buttons.forEach((button, lane) => button.addEventListener("click", () => choose(lane)));
  drawn.on("tap", (event) => { if (event.target === drawn && chosen >= 0) { choose(chosen); } });

  function treatments(edge) {
    if (edge.factual_treatment === null) { return ""; }
    return ", T = " + Number(edge.factual_treatment) + ", T^CF = " + Number(edge.counterfactual_treatment);
  }
  function reading(line) {
    const travelled = line.steps.map((s) => "path " + (s.path + 1) + " with importance " + s.importance.toFixed(4)).join(", ");
    const [source, target] = ends(line.edge);
    return cut(shown(source), NAME) + " —" + cut(line.name, NAME) + "→ " + cut(shown(target), NAME) + treatments(line.edge) +
      ". On " + travelled + ".";
  }
  drawn.on("mouseover", "edge", function (event) { hint.textContent = reading(event.target.data()); });
  drawn.on("mouseout", "edge", function () { hint.textContent = resting; });

  // What stands on the canvas, for anybody who checks: the paths as they were drawn, edge by edge, and whether the page fits.
  function canvas() {
    const paths = explanation.paths.map(() => []);
    const colors = explanation.paths.map(() => []);
    drawn.edges().forEach(function (edge) {
      paths[edge.data("path")][edge.data("step")] = [edge.source().id(), edge.data("relation"), edge.target().id()];
      colors[edge.data("path")][edge.data("step")] = edge.style("line-color");
    });
    const box = drawn.elements().renderedBoundingBox();
    const page = document.documentElement;
    return { paths: paths, colors: colors, entities: drawn.nodes().map((node) => node.id()),
      visible: drawn.elements().every((element) => element.visible()), names: drawn.nodes().map((node) => node.data("name")),
      score: score && score.textContent, readings: drawn.edges().map((edge) => reading(edge.data())),
      swatches: items.concat(buttons).map((item) => getComputedStyle(item.querySelector(".swatch")).borderTopColor),
      width: page.clientWidth, needed: page.scrollWidth,
      inside: box.x1 >= 0 && box.y1 >= 0 && box.x2 <= drawn.width() && box.y2 <= drawn.height() };
  }
  drawn.ready(function () { document.documentElement.dataset.drawn = JSON.stringify(canvas()); });
  window.kgcf = { graph: drawn, choose: choose, rescore: rescore, shown: canvas };
})();
