"use strict";
// Draws the paths of the explanation; every triple once, however many paths travel it.
(function () {
  const explanation = JSON.parse(document.getElementById("explanation").textContent);
  const COLORS = ["#1f6feb", "#c2410c", "#15803d", "#7c3aed", "#b45309", "#0e7490", "#be185d", "#4d7c0f"];
  const hint = document.getElementById("hint");
  const resting = hint.textContent;

  // Control characters and directional overrides are written out, as everywhere; an ambiguous name has its label behind it.
  function inert(text) {
    return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]/gu,
      (c) => "\\u" + c.codePointAt(0).toString(16).padStart(4, "0"));
  }
  function shown(named) { return inert(named.ambiguous ? named.name + " (" + named.label + ")" : named.name); }

  function start(path) { return path.edges[0].head; }
  function key(edge) {
    const ends = edge.inverse ? [edge.tail, edge.head] : [edge.head, edge.tail];
    return JSON.stringify([ends[0].label, edge.relation.label, ends[1].label]);
  }

  // Where an entity stands: its share of the way on the paths through it, and the mean of their lanes.
  function places() {
    const found = new Map();
    explanation.paths.forEach(function (path, lane) {
      [start(path)].concat(path.edges.map((edge) => edge.tail)).forEach(function (entity, i) {
        const place = found.get(entity.label) || { name: shown(entity), ways: [], lanes: [] };
        place.ways.push(i / path.edges.length);
        place.lanes.push(lane);
        found.set(entity.label, place);
      });
    });
    return found;
  }
  function mean(values) { return values.reduce((a, b) => a + b, 0) / values.length; }

  function nodes() {
    const middle = (explanation.paths.length - 1) / 2;
    const all = [];
    places().forEach(function (place, label) {
      const way = mean(place.ways);
      const end = way === 0 || way === 1;
      all.push({ data: { id: label, name: place.name, end: end ? 1 : 0 }, position: { x: way, y: end ? middle : mean(place.lanes) } });
    });
    separate(all);
    all.forEach(function (node) { node.position = { x: 1100 * node.position.x, y: 90 * node.position.y }; });
    return all;
  }
  // Entities of nearly the same column keep a distance of most of a lane.
  function separate(all) {
    const columns = new Map();
    all.forEach(function (node) {
      const column = Math.round(node.position.x * 8);
      columns.set(column, (columns.get(column) || []).concat([node]));
    });
    columns.forEach(function (column) {
      column.sort((a, b) => a.position.y - b.position.y);
      for (let i = 1; i < column.length; i++) {
        column[i].position.y = Math.max(column[i].position.y, column[i - 1].position.y + 0.8);
      }
    });
  }

  function edges() {
    const strongest = Math.max(...explanation.paths.map((path) => Math.abs(path.weight)), 1e-12);
    const all = new Map();
    explanation.paths.forEach(function (path, lane) {
      path.edges.forEach(function (edge, step) {
        const id = key(edge);
        if (!all.has(id)) {
          const ends = edge.inverse ? [edge.tail, edge.head] : [edge.head, edge.tail];
          all.set(id, { data: {
            id: "edge " + id, source: ends[0].label, target: ends[1].label, relation: edge.relation.label,
            name: shown(edge.relation), travels: [], color: COLORS[lane % COLORS.length],
            width: 1.5 + 3 * Math.abs(path.weight) / strongest, edge: edge } });
        }
        all.get(id).data.travels.push({ path: lane, step: step, importance: edge.importance });
      });
    });
    return Array.from(all.values());
  }

  function treatments(edge) {
    if (edge.factual_treatment === null) { return ""; }
    return ", T = " + Number(edge.factual_treatment) + ", T^CF = " + Number(edge.counterfactual_treatment);
  }

  const drawn = cytoscape({
    container: document.getElementById("graph"),
    elements: { nodes: nodes(), edges: edges() },
    layout: { name: "preset", padding: 40 },
    maxZoom: 4, minZoom: 0.1, wheelSensitivity: 0.3,
    style: [
      { selector: "node", style: { label: "data(name)", "font-size": 14, "text-wrap": "wrap", "text-max-width": 150, "text-valign": "bottom",
        "text-margin-y": 4, width: 22, height: 22, "background-color": "#94a3b8", color: "#1c2330",
        "text-background-color": "#fcfdfe", "text-background-opacity": 0.8, "text-background-padding": 1 } },
      { selector: "node[end = 1]", style: { "background-color": "#1c2330", width: 30, height: 30, "font-weight": "bold" } },
      { selector: "edge", style: { label: "data(name)", "font-size": 11, color: "#475569", "curve-style": "bezier", width: "data(width)",
        "line-color": "data(color)", "target-arrow-color": "data(color)", "target-arrow-shape": "triangle", "text-rotation": "autorotate",
        "text-background-color": "#fcfdfe", "text-background-opacity": 0.9, "text-background-padding": 2, "text-max-width": 170, "text-wrap": "ellipsis" } },
      { selector: ".faded", style: { opacity: 0.12 } },
    ],
  });

  let chosen = -1;
  const items = Array.from(document.querySelectorAll("ol.paths li"));
  function choose(lane) {
    chosen = lane === chosen ? -1 : lane;
    items.forEach((item, i) => item.classList.toggle("chosen", i === chosen));
    drawn.elements().removeClass("faded");
    if (chosen >= 0) {
      const kept = drawn.edges().filter((edge) => edge.data("travels").some((travel) => travel.path === chosen));
      drawn.elements().not(kept.union(kept.connectedNodes())).addClass("faded");
    }
  }
  items.forEach(function (item, lane) {
    item.addEventListener("click", () => choose(lane));
    item.addEventListener("keydown", (event) => { if (event.key === "Enter") { choose(lane); } });
  });
  drawn.on("tap", (event) => { if (event.target === drawn && chosen >= 0) { choose(chosen); } });
  drawn.on("mouseover", "edge", function (event) {
    const data = event.target.data();
    const importance = data.travels.map((t) => "path " + (t.path + 1) + ": " + t.importance.toFixed(4)).join("; ");
    hint.textContent = drawn.getElementById(data.source).data("name") + " —" + data.name + "→ " +
      drawn.getElementById(data.target).data("name") + treatments(data.edge) + ". Importance on " + importance;
  });
  drawn.on("mouseout", "edge", function () { hint.textContent = resting; });
  document.getElementById("fit").addEventListener("click", () => drawn.fit(undefined, 40));

  // What stands on the canvas, for anybody who checks: the paths as they were drawn, edge by edge.
  function canvas() {
    const paths = explanation.paths.map(() => []);
    drawn.edges().forEach(function (edge) {
      edge.data("travels").forEach(function (travel) {
        paths[travel.path][travel.step] = [edge.source().id(), edge.data("relation"), edge.target().id()];
      });
    });
    const box = drawn.elements().renderedBoundingBox();
    const visible = drawn.elements().every((element) => element.visible());
    return { paths: paths, entities: drawn.nodes().map((node) => node.id()), visible: visible,
      names: drawn.nodes().map((node) => node.data("name")),
      inside: box.x1 >= 0 && box.y1 >= 0 && box.x2 <= drawn.width() && box.y2 <= drawn.height() };
  }
  drawn.ready(function () { document.documentElement.dataset.drawn = JSON.stringify(canvas()); });
  window.kgcf = { graph: drawn, choose: choose, shown: canvas };
})();
