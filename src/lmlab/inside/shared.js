// What several scripts of a page use: white space made visible, and numbers unpacked when they are needed.
"use strict";
const inside = {
  seen: text => text.replace(/\n/g, "⏎").replace(/ /g, "␣").replace(/\t/g, "⇥") || "∅",
  async unpack(packed) {
    const bytes = Uint8Array.from(atob(packed), c => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
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
