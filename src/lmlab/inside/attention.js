// Attention of one head at a time, unpacked and drawn when it is looked at: as a map, as lines, and over the text itself.
"use strict";
(() => {
  const { seen, unpack } = inside;
  inside.whenNear("section.attention", open);

  function open(root) {
    // Row r asks; what it sees are places of `sees`. Looking back, the token before place r asks, and a place below 0 is the
    // beginning; looking around, place r asks; looking across, token r of another text is about to be written.
    const { way, asks, sees, begin, layers } = JSON.parse(document.getElementById(root.dataset.of).textContent);
    const total = (asks ?? sees).length, back = way === "back" ? 1 : 0;
    const map = root.querySelector("canvas.map"), lines = root.querySelector("canvas.lines");
    const strip = root.querySelector(".strip.rows"), source = root.querySelector(".strip.source");
    const slider = root.querySelector("input"), said = root.querySelector(".said");
    const chosen = root.querySelector("[aria-pressed=true]")?.dataset ?? { layer: 0, head: 0 };
    const state = { layer: Number(chosen.layer), head: Number(chosen.head), from: 0, row: null };
    const shown = () => Math.min(root.clientWidth < 640 ? 24 : 40, total + back);
    const nameOf = place => place < 0 ? begin : seen(sees[place]);
    const rowName = row => asks ? seen(asks[row]) : nameOf(row - back);

    // The weights of a head, unpacked once: a function of a row, which gives its weights by place.
    const opened = new Map();
    async function weights(layer, head) {
      const key = `${layer}.${head}`;
      if (!opened.has(key)) opened.set(key, unpack(document.getElementById(`${root.dataset.of}-${key}`).textContent));
      const bytes = await opened.get(key), { first, begins, reach } = layers[layer];
      return row => {
        const found = new Map();
        for (let c = 0; c < reach; c++) {
          const byte = bytes[row * reach + c];
          if (!byte) continue;
          const place = first[row] + c <= begins[row] ? -1 : first[row] + c;
          found.set(place, (found.get(place) ?? 0) + (byte / 255) ** 2);
        }
        return found;
      };
    }

    // What `count` rows from state.from on look at: names of the columns, the weights in them, and
    // which column the first row itself is. Beside the places that
    // are shown there may be a column for the beginning, and one on either side for all that is further off.
    function grid(rowOf, count) {
      const size = Math.min(sees.length, asks ? Math.max(count, root.clientWidth < 640 ? 24 : 60) : count);
      const aim = asks ? Math.round(state.from / total * sees.length) : state.from - back;
      const start = Math.max(0, Math.min(aim, sees.length - size));
      const right = !back && start + size < sees.length;
      const names = [...back ? [begin] : [], ...start ? ["…"] : []], at = names.length;
      for (let i = 0; i < size; i++) names.push(nameOf(start + i));
      if (right) names.push("…");
      const columnOf = place => place < 0 ? 0 : place < start ? at - 1
        : place < start + size ? at + place - start : right ? at + size : -1;
      const rows = [];
      for (let i = 0; i < count; i++) {
        const row = new Float32Array(names.length);
        for (const [place, weight] of rowOf(state.from + i)) {
          const column = columnOf(place);
          if (column >= 0) row[column] += weight;
        }
        rows.push(row);
      }
      return { names, rows, own: asks ? 0 : columnOf(state.from - back) };
    }

    const css = name => getComputedStyle(root).getPropertyValue(name).trim();
    let cell = 12, top = 26;  // of the map, in pixels: one weight, and the names above
    async function draw() {
      const rowOf = await weights(state.layer, state.head);
      const count = Math.min(shown(), total - state.from), { names, rows, own } = grid(rowOf, count);
      drawTexts(rowOf, count);
      drawMap(names, rows);
      drawLines(names, rows, own);
      tell(rowOf);
      root.querySelector("output").textContent = `${state.from + 1}–${state.from + count} of ${total}`;
    }

    // Where tokens are longer than letters, the names of columns stand upright.
    const letter = 6.7, most = 9;
    function drawMap(names, rows) {
      const mine = rows.map((_, i) => rowName(state.from + i).slice(0, most)), theirs = names.map(name => name.slice(0, most));
      const longest = texts => Math.max(...texts.map(text => text.length)), upright = longest(theirs) > 1;
      const left = 12 + letter * longest(mine);
      top = 12 + letter * (upright ? longest(theirs) : 1);
      const room = map.parentElement.clientWidth * (root.clientWidth < 640 ? 1 : .55) - left - 8;
      cell = Math.max(6, Math.min(upright ? 26 : 16, room / names.length));
      const pen = inside.pen(map, left + cell * names.length, top + cell * rows.length);
      const ink = css("--ink"), hot = css("--cool");
      pen.font = `${Math.min(11, cell)}px ui-monospace, Menlo, Consolas, monospace`;
      pen.textBaseline = "middle", pen.fillStyle = ink;
      theirs.forEach((name, j) => {
        pen.save();
        pen.translate(left + cell * (j + .5), top - 6);
        if (upright) pen.rotate(-Math.PI / 2);
        pen.textAlign = upright ? "left" : "center";
        pen.fillText(name, 0, 0);
        pen.restore();
      });
      pen.textAlign = "right";
      rows.forEach((row, i) => {
        pen.fillStyle = ink;
        pen.fillText(mine[i], left - 6, top + cell * (i + .5));
        for (let j = 0; j < row.length; j++) {
          if (!row[j]) continue;
          pen.fillStyle = `rgba(${hot}, ${Math.min(1, .06 + Math.sqrt(row[j]))})`;
          pen.fillRect(left + cell * j, top + cell * i, cell - .5, cell - .5);
        }
        if (state.row === state.from + i) {
          pen.strokeStyle = css("--accent"), pen.lineWidth = 1.5;
          pen.strokeRect(left, top + cell * i, cell * names.length, cell);
        }
      });
    }

    // Rows stand to the left; where it is one text, each beside itself on the right.
    const gap = 17;
    let down = 0;
    function drawLines(names, rows, own) {
      down = own;
      const height = gap * Math.max(names.length, rows.length + down) + 8;
      const width = Math.min(340, root.clientWidth - 20), pen = inside.pen(lines, width, height);
      const ink = css("--ink"), hot = css("--cool"), at = i => gap * (i + .5) + 4;
      pen.font = "12px ui-monospace, Menlo, Consolas, monospace", pen.textBaseline = "middle";
      rows.forEach((row, i) => {
        const on = state.row === null || state.row === state.from + i, y = at(i + down);
        for (let j = 0; j < row.length; j++) {
          if (row[j] < .02) continue;
          pen.strokeStyle = `rgba(${hot}, ${(on ? 1 : .12) * Math.min(1, row[j] + .05)})`;
          pen.lineWidth = .5 + 4 * row[j];
          pen.beginPath();
          pen.moveTo(74, y);
          pen.bezierCurveTo(width / 2, y, width / 2, at(j), width - 74, at(j));
          pen.stroke();
        }
        pen.fillStyle = ink, pen.globalAlpha = on ? 1 : .45, pen.textAlign = "right";
        pen.fillText(rowName(state.from + i).slice(0, 8), 68, y);
        pen.globalAlpha = 1;
      });
      pen.textAlign = "left", pen.fillStyle = ink;
      names.forEach((name, j) => pen.fillText(name.slice(0, 8), width - 68, at(j)));
    }

    // The text around the rows, coloured by how the chosen row looks at it; the source of a translation is another one.
    function drawTexts(rowOf, count) {
      const before = Math.min(layers[state.layer].reach, 128);
      const low = Math.max(0, state.from - before), high = Math.min(total, state.from + count + (back ? 0 : before));
      const look = state.row === null ? new Map() : rowOf(state.row);
      fill(strip, asks ?? sees, low, high);
      if (source) fill(source, sees, 0, sees.length);
      const hot = css("--cool"), coloured = source ?? strip, first = Number(coloured.dataset.low);
      [...coloured.children].forEach((token, i) => {
        const weight = look.get(first + i) ?? 0;
        token.style.background = weight ? `rgba(${hot}, ${Math.min(.75, Math.sqrt(weight))})` : "";
      });
      [...strip.children].forEach((token, i) =>
        token.classList.toggle("on", state.row !== null && low + i === state.row - back));
    }

    function fill(box, texts, low, high) {
      if (Number(box.dataset.low) === low && box.children.length === high - low) return;
      box.textContent = "";
      box.dataset.low = low;
      for (let place = low; place < high; place++)
        box.append(Object.assign(document.createElement("b"), { textContent: texts[place] }));
    }

    function tell(rowOf) {
      const head = `head ${layers[state.layer].names[state.head]}`;
      if (state.row === null) {
        said.textContent = `${head}: point at a token to see where it looks.`;
        return;
      }
      const best = [...rowOf(state.row)].sort((a, b) => b[1] - a[1]).slice(0, 4);
      const parts = best.map(([place, weight]) => `${nameOf(place)}${where(place)} ${(100 * weight).toFixed(0)}%`);
      const moment = { back: "after", around: "at", across: "before writing" }[way];
      said.textContent = `${head}, ${moment} ${rowName(state.row)}: ${parts.join(" · ") || "nothing to look at"}`;
    }

    function where(place) {
      const off = state.row - back - place;
      if (place < 0 || asks) return "";
      return off === 0 ? " itself" : back ? ` ${off} back` : ` ${Math.abs(off)} ${off > 0 ? "before" : "after"}`;
    }

    function choose(row) {
      const next = row === null ? null : Math.min(total - 1, Math.max(0, row));
      if (next === state.row) return;
      state.row = next;
      if (next !== null && (next < state.from || next >= state.from + shown())) move(next - (shown() >> 1));
      else draw();
    }

    function move(from) {
      state.from = Math.min(Math.max(0, from), Math.max(0, total - shown()));
      slider.value = state.from;
      draw();
      thumbs();
    }

    // Small pictures of all heads: those that can be seen are drawn, the others when there is time, and anew for a printer.
    const buttons = [...root.querySelectorAll(".layers button")];
    const visible = new Set();
    async function thumb(button) {
      const rowOf = await weights(Number(button.dataset.layer), Number(button.dataset.head));
      const count = Math.min(48, total - state.from), { names, rows } = grid(rowOf, count);
      const pen = button.querySelector("canvas").getContext("2d"), hot = css("--cool");
      pen.clearRect(0, 0, 96, 96);
      inside.field(pen, names.length, rows.length, 96, 96, (j, i) => Math.sqrt(rows[i][j]), hot, hot);
    }
    inside.atLeisure(new Set(buttons), thumb);
    addEventListener("beforeprint", () => buttons.forEach(thumb));
    root.querySelector(".where").hidden = total <= shown();
    const thumbs = () => visible.forEach(thumb);
    const watcher = new IntersectionObserver(entries => entries.forEach(({ target, isIntersecting }) => {
      if (isIntersecting) { visible.add(target); thumb(target); } else visible.delete(target);
    }));
    for (const button of buttons) {
      watcher.observe(button);
      button.addEventListener("click", () => {
        for (const other of buttons) other.setAttribute("aria-pressed", other === button);
        state.layer = Number(button.dataset.layer), state.head = Number(button.dataset.head);
        draw();
      });
    }

    const rowAt = y => state.from + Math.floor((y - top) / cell);
    map.addEventListener("mousemove", e => { const row = rowAt(e.offsetY); choose(e.offsetY < top ? null : row); });
    map.addEventListener("click", e => choose(rowAt(e.offsetY)));
    lines.addEventListener("mousemove", e => {
      const row = Math.floor((e.offsetY - 4) / gap) - down;
      choose(row < 0 ? null : state.from + row);
    });
    const placeOf = token => Number(strip.dataset.low) + Array.prototype.indexOf.call(strip.children, token);
    for (const event of ["mouseover", "click"])
      strip.addEventListener(event, e => e.target.localName === "b" && choose(placeOf(e.target) + back));
    strip.addEventListener("focus", () => state.row === null && choose(state.from + back));
    // Keys walk after a click on a map or a head too; the slider and the table keep their own.
    root.addEventListener("keydown", e => {
      if (e.target.closest("input, .scroll")) return;
      const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 10, ArrowUp: -10 }[e.key];
      if (e.key === "Escape") choose(null);
      if (!step) return;
      e.preventDefault();
      choose((state.row ?? state.from) + step);
    });
    // A token that is pointed at where the text is coloured by surprise is chosen here too.
    const follow = token => token && root.dataset.of === `attention-${token.run}` && choose(token.place + 1);
    document.addEventListener("token", ({ detail }) => follow(detail));
    follow(inside.token);  // before this section was opened
    slider.addEventListener("input", () => { state.row = null; move(Number(slider.value)); });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { draw(); thumbs(); });
    let width = 0;
    new ResizeObserver(() => {
      if (root.clientWidth === width) return;
      width = root.clientWidth;
      draw();
    }).observe(root);
  }
})();
