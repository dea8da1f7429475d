// Moving the entries of the winning capsule: a decoder draws what they mean.

import { minus } from "./answer.js";
import { reconstruct } from "./server.js";

// How far an entry is moved either way, as in the pictures of `evaluate`.
const FAR = 0.25;

const $ = (id) => document.getElementById(id);

// What is on show: the capsules, all but the winner zero, and whose they are.
let shown = null;
let drawing = false;
let due = false;

export function hideDecoder() {
  shown = null;
  $("decoder").hidden = true;
}

// `original` is the address of the network's input, `complain` takes errors.
export function showDecoder(prediction, about, original, complain) {
  const { capsules, class_ids: winner, class_names: name } = prediction;
  const entries = capsules[winner];
  shown = {
    about, complain, name, winner, entries: [...entries], first: entries,
    zeros: capsules.map((each) => each.map(() => 0)),
  };
  $("capsule").hidden = true;
  $("decoder").hidden = false;
  $("decoder-title").textContent = `What capsule “${name}” recalls`;
  $("original").src = original ?? "";
  $("original").parentElement.hidden = !original;
  $("sliders").replaceChildren(...entries.map(newSlider));
  reset();
}

function newSlider(_, place) {
  const label = document.createElement("label");
  const number = label.appendChild(document.createElement("span"));
  number.textContent = place;
  const slider = label.appendChild(document.createElement("input"));
  Object.assign(slider, { type: "range", min: -FAR, max: FAR, step: 0.01 });
  slider.setAttribute("aria-label", `Entry ${place}`);
  // For the eye: the slider itself says its value.
  label.appendChild(document.createElement("span")).ariaHidden = "true";
  slider.addEventListener("input", () => {
    shown.entries[place] = shown.first[place] + Number(slider.value);
    showEntry(label, place);
    draw();
  });
  return label;
}

function showEntry(label, place) {
  const [, slider, value] = label.children;
  value.textContent = minus(shown.entries[place]);
  slider.setAttribute("aria-valuetext", value.textContent);
  label.classList.toggle("moved", shown.entries[place] !== shown.first[place]);
}

function reset() {
  shown.entries = [...shown.first];
  for (const [place, label] of [...$("sliders").children].entries()) {
    label.children[1].value = 0;
    showEntry(label, place);
  }
  draw();
}

// One question at a time; of those that come meanwhile the last is asked.
async function draw() {
  due = true;
  if (drawing) return;
  drawing = true;
  while (due && shown) {
    due = false;
    const mine = shown;
    const capsules = mine.zeros.with(mine.winner, mine.entries);
    const start = performance.now();
    try {
      const image = await reconstruct(capsules, mine.about);
      if (mine === shown) paint(image, performance.now() - start);
    } catch (trouble) {
      if (mine === shown) mine.complain(trouble);
    }
  }
  drawing = false;
}

function paint(rows, milliseconds) {
  const canvas = $("drawn");
  canvas.height = rows.length;
  canvas.width = rows[0].length;
  const picture = new ImageData(canvas.width, canvas.height);
  rows.flat().forEach((pixel, place) => {
    const [red, green, blue] = pixel.length === 1 ? Array(3).fill(pixel[0]) : pixel;
    picture.data.set([red, green, blue, 1].map((value) => 255 * value), 4 * place);
  });
  canvas.getContext("2d").putImageData(picture, 0, 0);
  const moved = document.querySelectorAll("#sliders .moved").length;
  const words = moved
    ? `Recalled, ${moved} ${moved === 1 ? "entry" : "entries"} moved`
    : "Recalled from the capsule alone";
  $("recalled").textContent = words;
  canvas.setAttribute("aria-label", `“${shown.name}”. ${words}`);
  canvas.dataset.milliseconds = milliseconds;
  $("reset").disabled = moved === 0;
}

$("reset").addEventListener("click", () => {
  reset();
  $("sliders").querySelector("input").focus();
});
