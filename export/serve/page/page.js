"use strict";

// Photographs are redrawn at this size, upright: enough for any model here.
const LONGEST_SIDE = 1024;
// Beyond these many classes only the longest are shown, longest first.
const CLASSES_SHOWN = 20;
const TOP = 10;
// Paper and ink, each what the other is when inverted.
const LIGHT = "#ece9e4";
const DARK = "#13161b";

const $ = (id) => document.getElementById(id);
const pad = $("pad");
const pen = pad.getContext("2d");
let about = null;
let asked = 0;
let inverted = false;
let previewUrl = null;

// --- asking the server -----------------------------------------------------

class Trouble extends Error {}

async function request(path, options) {
  try {
    return await fetch(path, options);
  } catch {
    throw new Trouble("The server does not answer. Is it still running?");
  }
}

async function learn() {
  about = await (await request("page.json")).json();
  document.title = about.name;
  $("name").textContent = about.name;
  const [height, width] = about.image_shape ?? [];
  $("about").textContent = [
    `version ${about.version}`,
    height && `${width} × ${height} pixels`,
    about.classes.length && `${about.classes.length} classes`,
  ].filter(Boolean).join(" · ");
  showSamples();
}

async function predict(blob) {
  if (about === null) await learn();
  const body = JSON.stringify({
    signature_name: "serving_bytes",
    instances: [{ b64: await base64(blob) }],
  });
  if (body.length > about.max_megabytes * 1e6) {
    throw new Trouble(`This image is too large: the server takes ${about.max_megabytes} MB.`);
  }
  const start = performance.now();
  const path = `v1/models/${encodeURIComponent(about.name)}:predict`;
  const response = await request(path, { method: "POST", body });
  const milliseconds = performance.now() - start;
  if (!response.ok) throw new Trouble(await reason(response));
  const [prediction] = (await response.json()).predictions;
  return { ...prediction, milliseconds };
}

async function reason(response) {
  if (response.status === 413) return "This image is too large for the server.";
  if (response.status === 429) return "The server is busy. Try again in a moment.";
  const fallback = `The server answered with status ${response.status}.`;
  try {
    return `The server refused: ${(await response.json()).error}`;
  } catch {
    return fallback;
  }
}

function base64(blob) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result.split(",")[1] ?? "");
    reader.onerror = () => reject(new Trouble("This file cannot be read."));
    reader.readAsDataURL(blob);
  });
}

// --- images in -------------------------------------------------------------

async function classifyFile(file) {
  await attempt(async () => {
    const bitmap = await decoded(file);
    const blob = file.type === "image/png" && file.size < 1e6
      ? file
      : await redrawn(bitmap);
    showPreview(blob, Math.max(bitmap.width, bitmap.height));
    return predict(blob);
  });
}

async function classifyDrawing() {
  await attempt(async () => predict(await png(pad)));
}

async function decoded(file) {
  try {
    return await createImageBitmap(file);
  } catch {
    throw new Trouble("This file is not an image that the browser can read.");
  }
}

function redrawn(bitmap) {
  const scale = Math.min(1, LONGEST_SIDE / Math.max(bitmap.width, bitmap.height));
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(bitmap.width * scale));
  canvas.height = Math.max(1, Math.round(bitmap.height * scale));
  const context = canvas.getContext("2d");
  context.imageSmoothingQuality = "high";
  context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  return png(canvas);
}

function png(canvas) {
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

// The newest question alone may show its answer.
async function attempt(ask) {
  const mine = ++asked;
  const waiting = setTimeout(() => mine === asked && say("Asking the server …"), 300);
  try {
    const prediction = await ask();
    if (mine === asked) showAnswer(prediction);
  } catch (trouble) {
    if (!(trouble instanceof Trouble)) console.error(trouble);
    const words = trouble instanceof Trouble
      ? trouble.message
      : "The answer cannot be shown.";
    if (mine === asked) say(words, true);
  } finally {
    clearTimeout(waiting);
  }
}

// --- answers out -----------------------------------------------------------

function say(words, alarm = false) {
  $("message").textContent = words;
  $("message").classList.toggle("alarm", alarm);
  $("answer").hidden = words !== "";
}

function showAnswer({ scores, capsules, class_ids: winner, class_names: name, milliseconds }) {
  say("");
  $("winner").textContent = name;
  $("score").textContent = scores[winner].toFixed(2);
  $("meaning").textContent = capsules
    ? "Length of each class capsule"
    : "Probability of each class";
  showBars(scores, winner);
  showCapsule(capsules?.[winner], name);
  $("took").textContent = `Answered in ${Math.max(1, Math.round(milliseconds))} ms`;
}

function showBars(scores, winner) {
  let places = scores.map((_, place) => place);
  if (scores.length > CLASSES_SHOWN) {
    places.sort((a, b) => scores[b] - scores[a]);
    places = places.slice(0, TOP);
  }
  const list = $("bars");
  while (list.children.length > places.length) list.lastChild.remove();
  places.forEach((place, row) => {
    const item = list.children[row] ?? list.appendChild(newBar());
    const [name, track, value] = item.children;
    item.classList.toggle("first", place === winner);
    name.textContent = about.classes[place] ?? place;
    name.title = name.textContent;
    value.textContent = scores[place].toFixed(2);
    const percent = `${100 * Math.min(1, Math.max(0, scores[place]))}%`;
    requestAnimationFrame(() => { track.firstChild.style.width = percent; });
  });
}

function newBar() {
  const item = document.createElement("li");
  for (const name of ["name", "track", "value"]) {
    const part = item.appendChild(document.createElement("span"));
    part.className = name;
  }
  item.children[1].appendChild(document.createElement("div")).className = "bar";
  return item;
}

function showCapsule(entries, name) {
  $("capsule").hidden = !entries;
  if (!entries) return;
  const range = [Math.min(...entries), Math.max(...entries)].map(minus);
  const words = `The ${entries.length} entries of capsule “${name}”, from ${range.join(" to ")}`;
  document.querySelector("#capsule figcaption").textContent = words;
  $("entries").setAttribute("aria-label", words);
  const largest = Math.max(...entries.map(Math.abs), 1e-6);
  $("entries").replaceChildren(...entries.map((entry) => {
    const column = document.createElement("div");
    column.title = minus(entry);
    const bar = column.appendChild(document.createElement("i"));
    const size = `${(50 * Math.abs(entry)) / largest}%`;
    bar.className = entry < 0 ? "below" : "above";
    bar.style[entry < 0 ? "top" : "bottom"] = "50%";
    bar.style.height = size;
    return column;
  }));
}

function minus(number) {
  return number.toFixed(2).replace("-", "−");
}

function showPreview(blob, side) {
  setDrawing(false);
  if (previewUrl) URL.revokeObjectURL(previewUrl);
  previewUrl = URL.createObjectURL(blob);
  $("preview").src = previewUrl;
  $("preview").classList.toggle("small", side <= 128);
  $("preview").hidden = false;
  $("invitation").hidden = true;
}

function showSamples() {
  $("samples").hidden = about.samples.length === 0;
  if (!$("samples").hidden && asked === 0) {
    say("Choose a sample to begin, or bring an image of your own.");
  }
  $("samples").replaceChildren(...about.samples.map((file) => {
    const button = document.createElement("button");
    button.type = "button";
    const image = button.appendChild(document.createElement("img"));
    image.src = `samples/${encodeURIComponent(file)}`;
    image.alt = `Sample: ${file.replace(/^\d+_|\.png$/g, "")}`;
    button.title = image.alt;
    button.addEventListener("click", () => attempt(async () => {
      const response = await request(image.src);
      if (!response.ok) throw new Trouble("This sample is gone: load the page again.");
      const blob = await response.blob();
      showPreview(blob, 0);
      return predict(blob);
    }));
    return button;
  }));
}

// --- drawing ---------------------------------------------------------------

function setDrawing(on) {
  for (const part of [pad, $("clear"), $("invert")]) part.hidden = !on;
  $("draw").setAttribute("aria-pressed", String(on));
  if (on) {
    $("preview").hidden = true;
    $("invitation").hidden = true;
  } else if ($("preview").hidden) {
    $("invitation").hidden = false;
  }
}

function clearPad() {
  pen.fillStyle = inverted ? DARK : LIGHT;
  pen.strokeStyle = inverted ? LIGHT : DARK;
  pen.fillRect(0, 0, pad.width, pad.height);
  pen.lineWidth = pad.width / 9;
  pen.lineCap = pen.lineJoin = "round";
}

function invertPad() {
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

pad.addEventListener("pointerup", classifyDrawing);

// --- everything else a person can do ---------------------------------------

$("draw").addEventListener("click", () => {
  const on = $("draw").getAttribute("aria-pressed") !== "true";
  if (on) clearPad();
  setDrawing(on);
});
$("clear").addEventListener("click", clearPad);
$("invert").addEventListener("click", () => {
  invertPad();
  classifyDrawing();
});

$("file").addEventListener("change", ({ target }) => {
  if (target.files.length) classifyFile(target.files[0]);
  target.value = "";
});

document.addEventListener("paste", (event) => {
  const [file] = event.clipboardData.files;
  if (file) classifyFile(file);
});

for (const kind of ["dragenter", "dragover", "dragleave", "drop"]) {
  document.addEventListener(kind, (event) => {
    event.preventDefault();
    $("stage").classList.toggle("over", kind === "dragenter" || kind === "dragover");
    if (kind !== "drop") return;
    const [file] = event.dataTransfer.files;
    if (file) classifyFile(file);
    else say("Nothing was dropped that is a file.", true);
  });
}

learn().catch((trouble) => say(trouble.message, true));
