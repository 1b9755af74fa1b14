// What several scripts of a page use: white space made visible, and what is unpacked or filled when it is needed.
"use strict";
const inside = {
  seen: text => text.replace(/\n/g, "⏎").replace(/ /g, "␣").replace(/\t/g, "⇥") || "∅",
  async unpack(packed) {
    const text = atob(packed), bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  },
  // Sections are opened when they are about to be seen, one in a frame: thousands of tokens take a moment.
  whenNear(selector, open) {
    const closed = new Set(document.querySelectorAll(selector));
    const once = root => closed.delete(root) && (open(root), inside.layOut(root));
    const near = new IntersectionObserver(entries => entries.forEach(({ target, isIntersecting }) => {
      if (!isIntersecting) return;
      near.unobserve(target);
      requestAnimationFrame(() => once(target));
    }), { rootMargin: "900px" });
    for (const root of closed) near.observe(root);
    addEventListener("load", () => inside.atLeisure(closed, once));
  },
  // Whatever is in a set and nobody has come to is worked off when the browser has nothing to do, and at once for a printer.
  atLeisure(things, work) {
    const idle = window.requestIdleCallback ?? (then => setTimeout(then, 50));
    const next = () => {
      const [thing] = things;
      if (thing === undefined) return;
      work(thing);
      things.delete(thing);
      idle(next);
    };
    idle(next);
    addEventListener("beforeprint", () => { for (const thing of things) work(thing); things.clear(); });
  },
  // What is laid out only where it can be seen, so that the page opens soon, is laid out everywhere when there is time: pictures
  // of whole pages are taken of more than can be seen.
  layOut(root) {
    const parts = [...root.querySelectorAll("section.gates, section.attention, .tokens.long, .piece")];
    if (root !== document) parts.unshift(root);
    inside.atLeisure(new Set(parts), part => part.style.contentVisibility = "visible");
  },
  // Tokens as elements, in pieces that end with a line: a browser lays out only those that can be seen at first.
  pour(box, texts) {
    const tokens = texts.map(text => Object.assign(document.createElement("b"), { textContent: text }));
    for (let start = 0, end; start < texts.length; start = end) {
      for (end = start + 1; end < texts.length && (end - start < 250 || !texts[end - 1].endsWith("\n")); end++);
      const piece = Object.assign(document.createElement("span"), { className: "piece" });
      piece.append(...tokens.slice(start, end));
      box.append(piece);
    }
    return tokens;
  },
  // Numbers from -1 to 1 as colours, `across` times `down` of them over a rectangle: far faster than rectangles by themselves.
  field(pen, across, down, width, height, value, hot, cold) {
    const [red, blue] = [hot, cold].map(colour => colour.split(",").map(Number)), small = new OffscreenCanvas(across, down);
    const image = new ImageData(across, down);
    for (let y = 0, at = 0; y < down; y++)
      for (let x = 0; x < across; x++, at += 4) {
        const number = value(x, y), colour = number < 0 ? red : blue;
        image.data[at] = colour[0], image.data[at + 1] = colour[1], image.data[at + 2] = colour[2];
        image.data[at + 3] = 255 * Math.min(1, Math.abs(number));
      }
    small.getContext("2d").putImageData(image, 0, 0);
    pen.imageSmoothingEnabled = false;
    pen.drawImage(small, 0, 0, width, height);
  },
  // A canvas of so many CSS pixels, sharp on every screen, and cleared.
  pen(canvas, width, height) {
    const scale = devicePixelRatio || 1;
    canvas.width = width * scale, canvas.height = height * scale;
    canvas.style.width = `${width}px`, canvas.style.height = `${height}px`;
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    return pen;
  },
};
addEventListener("load", () => inside.layOut(document));
