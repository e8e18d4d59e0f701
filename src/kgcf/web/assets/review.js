"use strict";
// Judging by keyboard: j and k move, a accepts, r rejects, l leaves, u undoes, n writes a note, w shows why.
(function () {
  const rows = Array.from(document.querySelectorAll(".judge > li"));
  const status = document.getElementById("status"), reviewer = document.getElementById("reviewer");
  const run = "/api/runs/" + encodeURIComponent(document.body.dataset.run) + "/review/";
  const WORDS = { accept: "Accepted", reject: "Rejected", leave: "Left undecided" };
  let current = -1;

  function say(text, error) { status.textContent = text; status.className = "status" + (error ? " message error" : ""); }
  function move(index, focus) {
    if (!rows.length) { return; }
    current = Math.max(0, Math.min(rows.length - 1, index));
    rows.forEach(function (row, i) {
      row.classList.toggle("current", i === current);
      if (i === current) { row.setAttribute("aria-current", "true"); } else { row.removeAttribute("aria-current"); }
    });
    if (focus) { rows[current].focus({ preventScroll: true }); rows[current].scrollIntoView({ block: "nearest" }); }
  }
  function field(row, name) { return row.querySelector("[name=" + name + "]"); }
  function show(link) {
    const row = document.getElementById("link-" + link.id);
    if (!row) { return; }
    const verdict = link.decision ? link.decision.verdict : "";
    row.className = [verdict, row.classList.contains("current") ? "current" : ""].join(" ").trim();
    field(row, "seen").value = link.decision ? link.decision.id : 0;
    const badge = row.querySelector(".verdict");
    badge.textContent = verdict ? WORDS[verdict] + " by " + link.decision.reviewer : "";
    badge.className = "verdict" + (verdict ? " badge " + verdict : "");
  }
  async function post(page, values) {
    const answer = await fetch(run + page, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(values) });
    const found = await answer.json();
    if (!answer.ok) { throw new Error(found.error); }
    return found;
  }
  function named() {
    if (reviewer.value.trim()) { return true; }
    say("Your name first: it stands beside your decisions.", true);
    reviewer.focus();
    return false;
  }
  async function decide(row, verdict) {
    if (!named()) { return; }
    const index = rows.indexOf(row);
    try {
      const link = await post("decide", { link: Number(field(row, "link").value), verdict: verdict, reviewer: reviewer.value,
        note: field(row, "note").value, seen: Number(field(row, "seen").value) });
      show(link);
      say(WORDS[verdict] + ": " + row.dataset.words + ". Press u to undo.");
      move(index + 1, true);
    } catch (error) { say(error.message, true); }
  }
  async function undo() {
    if (!named()) { return; }
    try {
      const link = await post("undo", { reviewer: reviewer.value });
      show(link);
      const index = rows.findIndex((row) => row.id === "link-" + link.id);
      if (index >= 0) { move(index, true); }
      say("Taken back.");
    } catch (error) { say(error.message, true); }
  }
  rows.forEach(function (row, index) {
    row.tabIndex = -1;
    row.addEventListener("focusin", () => move(index, false));
    row.querySelector("form").addEventListener("submit", function (event) {
      event.preventDefault();
      decide(row, event.submitter ? event.submitter.value : "accept");
    });
  });
  document.getElementById("undo").addEventListener("click", function (event) { event.preventDefault(); undo(); });
  reviewer.addEventListener("input", () => document.querySelectorAll("input[type=hidden][name=reviewer]").forEach((one) => { one.value = reviewer.value; }));
  const KEYS = { j: () => move(current + 1, true), k: () => move(current - 1, true), a: () => decide(rows[current], "accept"),
    r: () => decide(rows[current], "reject"), l: () => decide(rows[current], "leave"), u: undo,
    n: () => field(rows[current], "note").focus(), w: () => rows[current].querySelector("a.why").click() };
  document.addEventListener("keydown", function (event) {
    const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName);
    if (event.key === "Escape" && typing) { document.activeElement.blur(); return; }
    if (typing || event.ctrlKey || event.metaKey || event.altKey || !(event.key in KEYS) || (!rows.length && event.key !== "u")) { return; }
    event.preventDefault();
    KEYS[event.key]();
  });
  const asked = rows.findIndex((row) => "#" + row.id === location.hash);
  if (rows.length) { move(asked >= 0 ? asked : 0, asked >= 0); }
  document.documentElement.dataset.ready = "review";
})();
