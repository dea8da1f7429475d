// Drawing.

// Paper and ink, each what the other is when inverted.
const LIGHT = "#ece9e4";
const DARK = "#13161b";
// Of a stroke, as a share of the pad, and of a drawing that is sized anew.
const WIDTH = 1 / 9;
const WIDTH_OF_SIZE = 1 / 7;

const pad = document.getElementById("pad");
const pen = pad.getContext("2d");
let inverted = false;
// Each a list of places [x, y].
let strokes = [];

// `style` says how the model's samples are drawn, where they are.
export function clearPad(style) {
  if (style) inverted = style.paper < style.ink;
  strokes = [];
  pen.fillStyle = inverted ? DARK : LIGHT;
  pen.strokeStyle = inverted ? LIGHT : DARK;
  pen.fillRect(0, 0, pad.width, pad.height);
  prepare(pen, pad.width * WIDTH);
}

export function invertPad() {
  inverted = !inverted;
  pen.save();
  pen.globalCompositeOperation = "difference";
  pen.fillStyle = "#ffffff";
  pen.fillRect(0, 0, pad.width, pad.height);
  pen.restore();
  pen.strokeStyle = inverted ? LIGHT : DARK;
}

// The drawing as the model's samples are: in their greys, as large as theirs,
// its centre of mass in the middle. The pad itself where they are no drawings.
export function drawnImage(style) {
  if (!style || strokes.length === 0) return pad;
  const side = pad.width;
  const width = side * style.size * WIDTH_OF_SIZE;
  const sized = resized(side * style.size - width);
  const [x, y] = centreOfMass(painted(sized, width, 0, 255));
  const centred = sized.map((each) => each.map(([a, b]) => [a + side / 2 - x, b + side / 2 - y]));
  return painted(centred, width, style.paper, style.ink);
}

// The strokes in the middle of the pad, `size` along their longer side.
function resized(size) {
  const places = strokes.flat();
  const [lows, highs] = [Math.min, Math.max].map((end) => [0, 1].map((axis) => (
    places.reduce((found, place) => end(found, place[axis]), places[0][axis])
  )));
  const extent = Math.max(highs[0] - lows[0], highs[1] - lows[1]);
  // A dot stays one.
  const scale = extent > pad.width * WIDTH / 2 ? size / extent : 1;
  const place = (value, axis) => (
    pad.width / 2 + scale * (value - (lows[axis] + highs[axis]) / 2)
  );
  return strokes.map((each) => each.map((values) => values.map(place)));
}

function painted(lines, width, paper, ink) {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = pad.width;
  const context = canvas.getContext("2d");
  context.fillStyle = `rgb(${paper} ${paper} ${paper})`;
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.strokeStyle = `rgb(${ink} ${ink} ${ink})`;
  prepare(context, width);
  context.beginPath();
  for (const [first, ...others] of lines) {
    start(context, first);
    for (const place of others) context.lineTo(...place);
  }
  context.stroke();
  return canvas;
}

function centreOfMass(canvas) {
  const { width, height } = canvas;
  const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
  let [mass, x, y] = [0, 0, 0];
  for (let pixel = 0; pixel < width * height; pixel += 1) {
    const ink = data[4 * pixel];
    mass += ink;
    x += ink * (pixel % width + 0.5);
    y += ink * (Math.floor(pixel / width) + 0.5);
  }
  return [x / mass, y / mass];
}

// A dot, which a line from a place to itself is not.
function start(context, [x, y]) {
  context.moveTo(x, y);
  context.lineTo(x + 0.01, y);
}

function prepare(context, width) {
  context.lineWidth = width;
  context.lineCap = context.lineJoin = "round";
}

function place(event) {
  const box = pad.getBoundingClientRect();
  const scale = pad.width / box.width;
  return [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
}

pad.addEventListener("pointerdown", (event) => {
  pad.setPointerCapture(event.pointerId);
  strokes.push([place(event)]);
  pen.beginPath();
  start(pen, place(event));
  pen.stroke();
});

pad.addEventListener("pointermove", (event) => {
  if (!pad.hasPointerCapture(event.pointerId)) return;
  for (const each of event.getCoalescedEvents?.() ?? [event]) {
    strokes.at(-1).push(place(each));
    pen.lineTo(...place(each));
  }
  pen.stroke();
});
