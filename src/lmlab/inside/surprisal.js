// Hovering, tapping or walking (arrow keys) over a token shows what every model expected at that place of the text.
"use strict";
(() => {
  const { models, kinds } = JSON.parse(document.getElementById("surprisal").textContent);
  const tip = document.getElementById("tip");
  const boxes = [...document.querySelectorAll(".tokens[data-of]")];
  const found = new Map(boxes.map(box => [box, null]));
  const tokensOf = box => found.get(box) ?? found.set(box, [...box.querySelectorAll("b")]).get(box);
  const limits = [0.25, 0.75, 1.5, 2.5, 4, 6, 9];
  const { seen } = inside;
  const element = (name, text) => Object.assign(document.createElement(name), { textContent: text });
  const bitsOf = bits => bits === null ? "impossible" : `${bits.toFixed(2)} bits`;

  // The token of a model in which a byte lies: ends are ascending.
  function tokenAt(model, byte) {
    let low = 0, high = model.ends.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (model.ends[middle] > byte) high = middle; else low = middle + 1;
    }
    return low;
  }

  function unmark() {
    for (const other of document.querySelectorAll(".tokens b.on")) other.classList.remove("on");
  }

  function show(box, place) {
    const mine = models[box.dataset.of], token = tokensOf(box)[place];
    const byte = place ? mine.ends[place - 1] : 0;
    unmark();
    box.dataset.at = place;
    tip.textContent = "";
    for (const model of [mine, ...models.filter(other => other !== mine)]) {
      const at = model === mine ? place : tokenAt(model, byte), there = tokensOf(boxes[models.indexOf(model)])[at];
      there.classList.add("on");
      const line = document.createElement("div");
      line.append(element("strong", model.name), " ", element("code", seen(there.textContent)),
        ` ${bitsOf(model.bits[at])}, expected ${model.entropy[at].toFixed(2)}, its choice no. ${model.rank[at]}`
        + (model.order ? `, from a ${model.order[at]}-gram` : ""));
      const table = document.createElement("table");
      for (const [piece, p] of model.favourites[at].slice(0, models.length > 2 && model !== mine ? 2 : 5)) {
        const row = table.insertRow();
        row.insertCell().append(element("code", seen(model.pieces[piece])));
        row.insertCell().textContent = `${(100 * p).toFixed(1)}%`;
      }
      tip.append(line, table);
    }
    tip.hidden = false;
    const area = token.getBoundingClientRect();
    tip.style.left = `${Math.min(Math.max(8, area.left), innerWidth - tip.offsetWidth - 8)}px`;
    const below = area.bottom + 8 + tip.offsetHeight < innerHeight;
    tip.style.top = `${below ? area.bottom + 8 : Math.max(8, area.top - tip.offsetHeight - 8)}px`;
    inside.token = { run: Number(box.dataset.of), place };
    document.dispatchEvent(new CustomEvent("token", { detail: inside.token }));
  }

  function hide() {
    tip.hidden = true;
    unmark();
  }

  // Bits of every token less those of another model, over the shortest stretch that is whole tokens for both.
  function against(model, other) {
    const found = new Array(model.ends.length).fill(0);
    let i = 0, j = 0, from = 0, mine = 0, theirs = 0;
    while (i < model.ends.length && j < other.ends.length) {
      if (model.ends[i] <= other.ends[j]) mine += model.bits[i] ?? 99;
      const a = model.ends[i], b = other.ends[j];
      if (b <= a) theirs += other.bits[j] ?? 99;
      if (a <= b) i++;
      if (b <= a) j++;
      if (a === b) {
        found.fill(mine - theirs, from, i);
        from = i, mine = 0, theirs = 0;
      }
    }
    return found;
  }

  const level = value => limits.filter(limit => value > limit).length;
  const both = value => value < 0 ? `t${level(-value)}` : `s${level(value)}`;
  function colour(kind) {
    boxes.forEach((box, index) => {
      const model = models[index];
      const other = kind.startsWith("against:") ? against(model, models[kind.slice(8)]) : null;
      tokensOf(box).forEach((token, i) => {
        const bits = model.bits[i] ?? 99;
        const style = other ? both(other[i])
          : kind === "bits" ? `s${level(bits)}`
          : kind === "entropy" ? `s${level(model.entropy[i])}`
          : kind === "excess" ? both(bits - model.entropy[i])
          : model.order ? `t${Math.min(7, model.order[i])}` : "";
        const kept = token.classList.contains("window") ? " window" : "";
        token.className = style + kept;
      });
    });
  }

  for (const choice of document.querySelectorAll("input[name=colour]"))
    choice.addEventListener("change", () => colour(kinds[choice.value]));
  for (const box of boxes) {
    const placeOf = token => tokensOf(box).indexOf(token);
    for (const event of ["mouseover", "click"])
      box.addEventListener(event, e => e.target.localName === "b" && show(box, placeOf(e.target)));
    box.addEventListener("mouseleave", hide);
    box.addEventListener("blur", hide);
    box.addEventListener("focus", () => box.matches(":focus-visible") && show(box, Number(box.dataset.at || 0)));
    box.addEventListener("keydown", e => {
      const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 10, ArrowUp: -10 }[e.key];
      if (e.key === "Escape") hide();
      if (!step) return;
      e.preventDefault();
      const place = Math.min(tokensOf(box).length - 1, Math.max(0, Number(box.dataset.at || 0) + step));
      tokensOf(box)[place].scrollIntoView({ block: "nearest" });
      show(box, place);
    });
  }
  addEventListener("scroll", hide, { passive: true });
})();
