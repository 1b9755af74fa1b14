// Hovering, tapping or walking (arrow keys) over a token shows its bits and the model's five favourites.
"use strict";
const readings = JSON.parse(document.getElementById("readings").textContent);
const tip = document.getElementById("tip");
const shown = text => text.replace(/\n/g, "⏎").replace(/ /g, "␣").replace(/\t/g, "⇥") || "∅";

function show(paragraph, token) {
  const at = Array.prototype.indexOf.call(paragraph.children, token);
  const [bits, favourites] = readings[paragraph.dataset.of][at];
  for (const other of document.querySelectorAll(".tokens b.on")) other.classList.remove("on");
  token.classList.add("on");
  paragraph.dataset.at = at;
  tip.textContent = "";
  const line = document.createElement("div");
  const code = document.createElement("code");
  code.textContent = shown(token.textContent);
  line.append(code, bits === null ? " · impossible for this model" : ` · ${bits.toFixed(2)} bits`);
  const table = document.createElement("table");
  for (const [piece, probability] of favourites) {
    const row = table.insertRow();
    const name = document.createElement("code");
    name.textContent = shown(piece);
    row.insertCell().append(name);
    row.insertCell().textContent = `${(100 * probability).toFixed(1)}%`;
  }
  tip.append(line, table);
  tip.hidden = false;
  const box = token.getBoundingClientRect();
  const left = Math.min(Math.max(8, box.left), innerWidth - tip.offsetWidth - 8);
  const below = box.bottom + 8 + tip.offsetHeight < innerHeight;
  tip.style.left = `${left}px`;
  tip.style.top = `${below ? box.bottom + 8 : Math.max(8, box.top - tip.offsetHeight - 8)}px`;
}

function hide() {
  tip.hidden = true;
  for (const token of document.querySelectorAll(".tokens b.on")) token.classList.remove("on");
}

for (const paragraph of document.querySelectorAll(".tokens[data-of]")) {
  for (const event of ["mouseover", "click"])
    paragraph.addEventListener(event, e => e.target.localName === "b" && show(paragraph, e.target));
  paragraph.addEventListener("mouseleave", hide);
  paragraph.addEventListener("blur", hide);
  paragraph.addEventListener("focus", () => show(paragraph, paragraph.children[paragraph.dataset.at || 0]));
  paragraph.addEventListener("keydown", e => {
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 10, ArrowUp: -10 }[e.key];
    if (e.key === "Escape") hide();
    if (!step) return;
    e.preventDefault();
    const all = paragraph.children;
    const next = Number(paragraph.dataset.at || 0) + step;
    show(paragraph, all[Math.min(all.length - 1, Math.max(0, next))]);
  });
}
addEventListener("scroll", hide, { passive: true });
