// Drawing.

// Paper and ink, each what the other is when inverted.
const LIGHT = "#ece9e4";
const DARK = "#13161b";

const pad = document.getElementById("pad");
const pen = pad.getContext("2d");
let inverted = false;

export function clearPad() {
  pen.fillStyle = inverted ? DARK : LIGHT;
  pen.strokeStyle = inverted ? LIGHT : DARK;
  pen.fillRect(0, 0, pad.width, pad.height);
  pen.lineWidth = pad.width / 9;
  pen.lineCap = pen.lineJoin = "round";
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

function place(event) {
  const box = pad.getBoundingClientRect();
  const scale = pad.width / box.width;
  return [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
}

pad.addEventListener("pointerdown", (event) => {
  pad.setPointerCapture(event.pointerId);
  pen.beginPath();
  pen.moveTo(...place(event));
  pen.lineTo(...place(event));
  pen.stroke();
});

pad.addEventListener("pointermove", (event) => {
  if (!pad.hasPointerCapture(event.pointerId)) return;
  for (const each of event.getCoalescedEvents?.() ?? [event]) pen.lineTo(...place(each));
  pen.stroke();
});
