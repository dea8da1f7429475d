import { say, showAnswer } from "./answer.js";
import { hideDecoder, showDecoder } from "./decoder.js";
import { clearPad, drawnImage, invertPad } from "./pad.js";
import { learn, png, predict, predictPath, request, seen, sendable, Trouble } from "./server.js";

const $ = (id) => document.getElementById(id);
const pad = $("pad");
let about = null;
let asked = 0;
let waiting = 0;
let previewUrl = null;
let seenUrl = null;

// --- from images to answers ------------------------------------------------

// The newest question alone may show its answer.
async function attempt(ask) {
  const mine = ++asked;
  const isNewest = () => mine === asked;
  clearTimeout(waiting);
  waiting = setTimeout(() => say("Asking the server …"), 300);
  try {
    about ??= await learn();
    await ask(isNewest);
  } catch (trouble) {
    if (!isNewest()) return;
    clearTimeout(waiting);
    say(wordsOf(trouble), true);
  }
}

function wordsOf(trouble) {
  if (trouble instanceof Trouble) return trouble.message;
  console.error(trouble);
  return "The answer cannot be shown.";
}

function complain(trouble) {
  say(wordsOf(trouble), true);
}

async function answered(blob) {
  const [prediction, view] = await Promise.all([predict(blob, about), seen(blob)]);
  return { blob, prediction, view };
}

function show(item) {
  clearTimeout(waiting);
  if (!item.drawn && !item.trouble) showPreview(item.blob);
  showSeen(item.view);
  hideDecoder();
  if (item.trouble) say(`${item.name}: ${item.trouble}`, true);
  else {
    showAnswer(item.prediction, about.classes);
    if (about.reconstruct) showDecoder(item.prediction, about, item.view && seenUrl, complain);
  }
  showCommand(item.name);
}

function classifyFiles(files) {
  return files.length > 1 ? classifySeveral(files) : attempt(async (isNewest) => {
    const [file] = files;
    const blob = await sendable(file, about);
    if (isNewest()) showPreview(blob);
    const item = { ...await answered(blob), name: file.name };
    if (!isNewest()) return;
    hideSeveral();
    show(item);
  });
}

function classifyDrawing() {
  return attempt(async (isNewest) => {
    const item = await answered(await png(drawnImage(about.drawing)));
    if (!isNewest()) return;
    hideSeveral();
    show({ ...item, drawn: true, name: "drawing.png" });
  });
}

function classifySample(file) {
  return attempt(async (isNewest) => {
    const response = await request(`samples/${encodeURIComponent(file)}`);
    if (!response.ok) throw new Trouble("This sample is gone: load the page again.");
    const item = await answered(await response.blob());
    if (!isNewest()) return;
    hideSeveral();
    show({ ...item, name: file });
  });
}

// --- several images --------------------------------------------------------

function classifySeveral(files) {
  return attempt(async (isNewest) => {
    const buttons = files.map(newTile);
    setDrawing(false);
    $("several").replaceChildren(...buttons);
    $("several").hidden = false;
    for (const [place, file] of files.entries()) {
      let item;
      try {
        item = await answered(await sendable(file, about));
      } catch (trouble) {
        item = { blob: file, view: null, trouble: wordsOf(trouble) };
      }
      if (!isNewest()) return;
      fillTile(buttons[place], { ...item, name: file.name });
      if (place === 0) buttons[0].click();
    }
  });
}

function newTile(file) {
  const button = document.createElement("button");
  button.type = "button";
  button.disabled = true;
  button.title = file.name;
  for (const tag of ["img", "strong", "span"]) button.appendChild(document.createElement(tag));
  button.firstChild.alt = "";
  button.children[1].dir = "auto";
  button.children[1].textContent = "…";
  button.lastChild.textContent = file.name;
  return button;
}

function fillTile(button, item) {
  const [image, name] = button.children;
  if (item.view) image.src = URL.createObjectURL(item.view);
  name.textContent = item.trouble ? "–" : item.prediction.class_names;
  button.classList.toggle("alarm", Boolean(item.trouble));
  button.disabled = false;
  button.addEventListener("click", () => {
    for (const each of $("several").children) each.removeAttribute("aria-current");
    button.setAttribute("aria-current", "true");
    show(item);
  });
}

function hideSeveral() {
  for (const { src } of $("several").querySelectorAll("img")) URL.revokeObjectURL(src);
  $("several").replaceChildren();
  $("several").hidden = true;
}

// --- what is shown beside the answer ---------------------------------------

function showPreview(blob) {
  setDrawing(false);
  if (previewUrl) URL.revokeObjectURL(previewUrl);
  previewUrl = URL.createObjectURL(blob);
  const image = $("preview");
  image.onload = () => {
    const isSmall = Math.max(image.naturalWidth, image.naturalHeight) <= 128;
    image.classList.toggle("small", isSmall);
  };
  image.src = previewUrl;
  image.hidden = false;
  $("invitation").hidden = true;
}

function showSeen(view) {
  const [image, caption] = $("seen").children;
  $("seen").hidden = !view;
  if (!view) return;
  if (seenUrl) URL.revokeObjectURL(seenUrl);
  seenUrl = URL.createObjectURL(view);
  image.src = seenUrl;
  const [height, width] = about.image_shape;
  caption.textContent = `The network’s input: ${width} × ${height}`;
}

function showCommand(name) {
  const file = /^[\w./-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`;
  const url = new URL(predictPath(about), location.href);
  $("command").textContent = `printf '{"signature_name": "serving_bytes", "instances": [{"b64": "%s"}]}' `
    + `"$(base64 < ${file} | tr -d '\\n')" | curl -d @- ${url}`;
  $("shell").hidden = false;
}

function showAbout() {
  document.title = about.name;
  $("name").textContent = about.name;
  const [height, width] = about.image_shape ?? [];
  $("about").textContent = [
    `version ${about.version}`,
    height && `${width} × ${height} pixels`,
    about.classes.length && `${about.classes.length} classes`,
  ].filter(Boolean).join(" · ");
  $("samples").hidden = about.samples.length === 0;
  const strip = document.querySelector("#samples .strip");
  strip.replaceChildren(...about.samples.map(newSample));
}

function newSample(file) {
  const button = document.createElement("button");
  button.type = "button";
  const image = button.appendChild(document.createElement("img"));
  image.src = `samples/${encodeURIComponent(file)}`;
  image.alt = `Sample: ${file.replace(/^\d+_|\.png$/g, "")}`;
  button.title = image.alt;
  button.addEventListener("click", () => classifySample(file));
  return button;
}

function setDrawing(on) {
  for (const part of [pad, $("clear")]) part.hidden = !on;
  // Where samples say how a drawing has to look there is nothing to choose.
  $("invert").hidden = !on || Boolean(about?.drawing);
  $("draw").setAttribute("aria-pressed", String(on));
  if (on) $("preview").hidden = true;
  $("invitation").hidden = on || !$("preview").hidden;
}

// --- what a person can do --------------------------------------------------

pad.addEventListener("pointerup", classifyDrawing);

$("draw").addEventListener("click", () => {
  const on = $("draw").getAttribute("aria-pressed") !== "true";
  if (on) {
    clearPad(about?.drawing);
    showSeen(null);
    hideSeveral();
    asked += 1;
    clearTimeout(waiting);
    say("Draw with a mouse, a finger or a pen.");
  }
  setDrawing(on);
});
$("clear").addEventListener("click", () => clearPad(about?.drawing));
$("invert").addEventListener("click", () => {
  invertPad();
  classifyDrawing();
});

$("file").addEventListener("change", ({ target }) => {
  if (target.files.length) classifyFiles([...target.files]);
  target.value = "";
});

document.addEventListener("paste", (event) => {
  const files = [...event.clipboardData.files];
  if (files.length) classifyFiles(files);
});

for (const kind of ["dragenter", "dragover", "dragleave", "drop"]) {
  document.addEventListener(kind, (event) => {
    event.preventDefault();
    $("stage").classList.toggle("over", kind === "dragenter" || kind === "dragover");
    if (kind !== "drop") return;
    const files = [...event.dataTransfer.files];
    if (files.length) classifyFiles(files);
    else say("Nothing was dropped that is a file.", true);
  });
}

$("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText($("command").textContent);
    $("copy").textContent = "Copied";
  } catch {
    // Browsers keep the clipboard from pages that come without TLS.
    getSelection().selectAllChildren($("command"));
    $("copy").textContent = "Selected";
  }
  setTimeout(() => { $("copy").textContent = "Copy"; }, 2000);
});

learn().then((found) => {
  about = found;
  showAbout();
  if (about.samples.length && asked === 0) classifySample(about.samples[0]);
}).catch((trouble) => say(wordsOf(trouble), true));
