// One gate or memory at a time: the text coloured by one unit, and a map of all units over a stretch of the text.
"use strict";
(() => {
  inside.whenNear("section.gates", open);

  function open(root) {
    const { tokens, layers } = JSON.parse(document.getElementById(root.dataset.of).textContent);
    const strip = root.querySelector(".strip"), map = root.querySelector("canvas"), said = root.querySelector(".said");
    const layerChoice = root.querySelector("select.layer"), unitChoice = root.querySelector("select.unit");
    const slider = root.querySelector("input[type=range]"), gates = [...root.querySelectorAll("input[type=radio]")];
    const css = name => getComputedStyle(root).getPropertyValue(name).trim();
    const wide = () => Math.min(root.clientWidth < 640 ? 64 : 160, tokens.length);
    const state = { from: 0, unit: 0 };
    const words = inside.pour(strip, tokens.map(token => token.replace(/\n/g, "⏎\n")));  // so that ends of lines can be pointed at

    const opened = new Map();
    async function values() {
      const layer = layers[Number(layerChoice.value)], gate = gates.find(g => g.checked).value;
      const key = `${layerChoice.value} ${gate}`, { shares, data } = layer.values[gate];
      if (!opened.has(key)) opened.set(key, inside.unpack(data));
      const bytes = await opened.get(key), units = layer.units.length;
      return { gate, units, at: (token, unit) => shares ? bytes[token * units + unit] / 255 : bytes[token * units + unit] / 63.75 - 2 };
    }

    async function draw() {
      const { units, at } = await values(), hot = css("--heat"), cold = css("--cool");
      words.forEach((token, i) => {
        const value = at(i, state.unit), level = Math.round(7 * Math.min(1, Math.abs(value)));
        token.className = `${value < 0 ? "s" : "t"}${level}`;
      });
      const count = Math.min(wide(), tokens.length - state.from), side = Math.max(3, Math.min(12, (root.clientWidth - 4) / count));
      const height = Math.max(4, Math.min(9, 400 / units)), pen = inside.pen(map, side * count, height * units);
      inside.field(pen, count, units, side * count, height * units, (i, unit) => .85 * at(state.from + i, unit), hot, cold);
      pen.strokeStyle = css("--accent"), pen.lineWidth = 1.5;
      pen.strokeRect(0, height * state.unit, side * count, height);
      root.querySelector("output").textContent = `${state.from + 1}–${state.from + count} of ${tokens.length}`;
      tell();
    }

    // What is shown, and its value after a token that is pointed at.
    async function tell(token = null, unit = state.unit) {
      const { gate, at } = await values();
      const value = token === null ? "" : `: ${at(token, unit).toFixed(2)} after ${inside.seen(tokens[token])}`;
      said.textContent = `${gate}, ${layers[Number(layerChoice.value)].units[unit]}${value}`;
    }

    function choose(unit) {
      const count = layers[Number(layerChoice.value)].units.length;
      state.unit = Math.min(count - 1, Math.max(0, unit));
      unitChoice.value = state.unit;
      draw();
    }

    function fill() {
      unitChoice.textContent = "";
      layers[Number(layerChoice.value)].units.forEach((name, i) =>
        unitChoice.append(Object.assign(document.createElement("option"), { value: i, textContent: name })));
      choose(layers[Number(layerChoice.value)].telling);
    }

    layerChoice.addEventListener("change", fill);
    unitChoice.addEventListener("change", () => choose(Number(unitChoice.value)));
    for (const gate of gates) gate.addEventListener("change", draw);
    slider.addEventListener("input", () => {
      state.from = Math.min(Number(slider.value), Math.max(0, tokens.length - wide()));
      draw();
    });
    const within = (share, count) => Math.min(count - 1, Math.max(0, Math.floor(share * count)));
    const unitAt = e => within(e.offsetY / map.clientHeight, layers[Number(layerChoice.value)].units.length);
    const tokenAt = e => state.from + within(e.offsetX / map.clientWidth, Math.min(wide(), tokens.length - state.from));
    map.addEventListener("click", e => choose(unitAt(e)));
    map.addEventListener("mousemove", e => tell(tokenAt(e), unitAt(e)));
    map.addEventListener("keydown", e => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
      if (!step) return;
      e.preventDefault();
      choose(state.unit + step);
    });
    strip.addEventListener("mouseover", e => tell(e.target.localName === "b" ? words.indexOf(e.target) : null));
    for (const element of [strip, map]) element.addEventListener("mouseleave", () => tell());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
    let width = 0;
    new ResizeObserver(() => {
      if (root.clientWidth === width) return;
      width = root.clientWidth;
      draw();
    }).observe(root);
    fill();
  }
})();
