// Attention of one head at a time, unpacked and drawn when it is looked at: as a map, as lines, and over the text itself.
"use strict";
(() => {
  const { seen, unpack } = inside;

  for (const root of document.querySelectorAll("section.attention")) open(root);

  function open(root) {
    const { tokens, begin, layers } = JSON.parse(document.getElementById(root.dataset.of).textContent);
    const map = root.querySelector("canvas.map"), lines = root.querySelector("canvas.lines");
    const strip = root.querySelector(".strip"), slider = root.querySelector("input"), said = root.querySelector(".said");
    const state = { layer: 0, head: 0, from: 0, row: null };
    const shown = () => Math.min(root.clientWidth < 640 ? 24 : 40, tokens.length + 1);

    // The weights of a head, unpacked once: a function of (row, token), a token below 0 being the beginning.
    const opened = new Map();
    async function weights(layer, head) {
      const key = `${layer}.${head}`;
      if (!opened.has(key)) opened.set(key, unpack(layers[layer].heads[head]));
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

    // Rows from state.from on. Row t is the moment after token t - 1 was read; columns are the beginning, all that is
    // earlier than what is shown, and the tokens of the rows.
    const nameOf = place => place < 0 ? begin : seen(tokens[place]);
    const firstPlace = () => Math.max(0, state.from - 1);
    function grid(rowOf, count) {
      const rows = [];
      for (let i = 0; i < count; i++) {
        const row = new Float32Array(count + 2);
        if (state.from + i < tokens.length)
          for (const [place, weight] of rowOf(state.from + i)) {
            const column = place < 0 ? 0 : place < firstPlace() ? 1 : 2 + place - firstPlace();
            if (column < row.length) row[column] += weight;
          }
        rows.push(row);
      }
      return rows;
    }
    const columnName = column => column === 0 ? begin : column === 1 ? "…" : nameOf(firstPlace() + column - 2);

    const css = name => getComputedStyle(root).getPropertyValue(name).trim();
    let cell = 12;
    const margin = 26;
    async function draw() {
      const rowOf = await weights(state.layer, state.head);
      const count = Math.min(shown(), tokens.length - state.from), rows = grid(rowOf, count);
      drawText(rowOf, count);
      drawMap(rows, count);
      drawLines(rows, count);
      tell(rowOf);
      const last = state.from + count;
      root.querySelector("output").textContent = `${state.from + 1}–${last} of ${tokens.length}`;
    }

    function drawMap(rows, count) {
      const room = map.parentElement.clientWidth * (root.clientWidth < 640 ? 1 : .55) - margin - 8;
      cell = Math.max(6, Math.min(16, room / (count + 2)));
      const size = margin + cell * (count + 2), pen = inside.pen(map, size, margin + cell * count);
      const ink = css("--ink"), hot = css("--cool");
      pen.font = `${Math.min(11, cell)}px ui-monospace, Menlo, Consolas, monospace`;
      pen.textAlign = "center", pen.textBaseline = "middle";
      for (let j = 0; j < count + 2; j++) {
        pen.fillStyle = ink;
        pen.fillText(columnName(j).slice(0, 2), margin + cell * (j + .5), margin / 2);
      }
      rows.forEach((row, i) => {
        pen.fillStyle = ink;
        pen.fillText(nameOf(state.from + i - 1).slice(0, 3), margin / 2, margin + cell * (i + .5));
        for (let j = 0; j < row.length; j++) {
          if (!row[j]) continue;
          pen.fillStyle = `rgba(${hot}, ${Math.min(1, .06 + Math.sqrt(row[j]))})`;
          pen.fillRect(margin + cell * j, margin + cell * i, cell - .5, cell - .5);
        }
        if (state.row === state.from + i) {
          pen.strokeStyle = css("--accent"), pen.lineWidth = 1.5;
          pen.strokeRect(margin, margin + cell * i, cell * (count + 2), cell);
        }
      });
    }

    const gap = 17;
    function drawLines(rows, count) {
      const width = Math.min(340, root.clientWidth - 20), pen = inside.pen(lines, width, gap * (count + 2) + 8);
      const ink = css("--ink"), hot = css("--cool"), at = i => gap * (i + .5) + 4;
      pen.font = "12px ui-monospace, Menlo, Consolas, monospace", pen.textBaseline = "middle";
      rows.forEach((row, i) => {
        const on = state.row === null || state.row === state.from + i;
        for (let j = 0; j < row.length; j++) {
          if (row[j] < .02) continue;
          pen.strokeStyle = `rgba(${hot}, ${(on ? 1 : .12) * Math.min(1, row[j] + .05)})`;
          pen.lineWidth = .5 + 4 * row[j];
          pen.beginPath();
          pen.moveTo(74, at(i + 2));
          pen.bezierCurveTo(width / 2, at(i + 2), width / 2, at(j), width - 74, at(j));
          pen.stroke();
        }
        pen.fillStyle = ink, pen.globalAlpha = on ? 1 : .45, pen.textAlign = "right";
        pen.fillText(nameOf(state.from + i - 1).slice(0, 8), 68, at(i + 2));
        pen.globalAlpha = 1;
      });
      pen.textAlign = "left", pen.fillStyle = ink;
      for (let j = 0; j < count + 2; j++) pen.fillText(columnName(j).slice(0, 8), width - 68, at(j));
    }

    // The text around the rows, coloured by how the chosen row looks at it.
    function drawText(rowOf, count) {
      const reach = layers[state.layer].reach, low = Math.max(0, state.from - Math.min(reach, 128));
      const high = Math.min(tokens.length, state.from + count);
      const look = state.row === null ? new Map() : rowOf(state.row);
      if (Number(strip.dataset.low) !== low || strip.children.length !== high - low) {
        strip.textContent = "";
        strip.dataset.low = low;
        for (let place = low; place < high; place++)
          strip.append(Object.assign(document.createElement("b"), { textContent: tokens[place] }));
      }
      const hot = css("--cool");
      [...strip.children].forEach((token, i) => {
        const weight = look.get(low + i) ?? 0;
        token.style.background = weight ? `rgba(${hot}, ${Math.min(.75, Math.sqrt(weight))})` : "";
        token.classList.toggle("on", state.row !== null && low + i === state.row - 1);
      });
    }

    function tell(rowOf) {
      const head = `head ${state.layer + 1}.${state.head + 1}`;
      if (state.row === null) {
        said.textContent = `${head}: point at a token to see where it looks.`;
        return;
      }
      const best = [...rowOf(state.row)].sort((a, b) => b[1] - a[1]).slice(0, 4);
      const parts = best.map(([place, weight]) => {
        const back = state.row - 1 - place;
        const where = place < 0 ? "" : back ? ` ${back} back` : " itself";
        return `${nameOf(place)}${where} ${(100 * weight).toFixed(0)}%`;
      });
      said.textContent = `${head}, after ${nameOf(state.row - 1)}: ${parts.join(" · ") || "nothing to look at"}`;
    }

    function choose(row) {
      const next = row === null ? null : Math.min(tokens.length - 1, Math.max(0, row));
      if (next === state.row) return;
      state.row = next;
      if (next !== null && (next < state.from || next >= state.from + shown())) move(next - (shown() >> 1));
      else draw();
    }

    function move(from) {
      state.from = Math.min(Math.max(0, from), Math.max(0, tokens.length - shown()));
      slider.value = state.from;
      draw();
      thumbs();
    }

    // Small pictures of all heads: only those that can be seen are drawn.
    const buttons = [...root.querySelectorAll(".layers button")];
    const visible = new Set();
    async function thumb(button) {
      const rowOf = await weights(Number(button.dataset.layer), Number(button.dataset.head));
      const count = Math.min(48, tokens.length - state.from), rows = grid(rowOf, count);
      const canvas = button.querySelector("canvas"), pen = canvas.getContext("2d"), side = 96 / (count + 2);
      const hot = css("--cool");
      pen.clearRect(0, 0, 96, 96);
      rows.forEach((row, i) => row.forEach((weight, j) => {
        if (!weight) return;
        pen.fillStyle = `rgba(${hot}, ${Math.min(1, Math.sqrt(weight))})`;
        pen.fillRect(side * j, side * i, side, side);
      }));
    }
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

    const rowAt = y => state.from + Math.floor((y - margin) / cell);
    map.addEventListener("mousemove", e => { const row = rowAt(e.offsetY); choose(e.offsetY < margin ? null : row); });
    map.addEventListener("click", e => choose(rowAt(e.offsetY)));
    lines.addEventListener("mousemove", e => {
      const row = Math.floor((e.offsetY - 4) / gap) - 2;
      choose(row < 0 ? null : state.from + row);
    });
    const placeOf = token => Number(strip.dataset.low) + Array.prototype.indexOf.call(strip.children, token);
    for (const event of ["mouseover", "click"])
      strip.addEventListener(event, e => e.target.localName === "b" && choose(placeOf(e.target) + 1));
    strip.addEventListener("focus", () => state.row === null && choose(state.from + 1));
    strip.addEventListener("keydown", e => {
      const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 10, ArrowUp: -10 }[e.key];
      if (e.key === "Escape") choose(null);
      if (!step) return;
      e.preventDefault();
      choose((state.row ?? state.from) + step);
    });
    // A token that is pointed at where the text is coloured by surprise is chosen here too.
    document.addEventListener("token", ({ detail }) => {
      if (root.dataset.of === `attention-${detail.run}`) choose(detail.place + 1);
    });
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
