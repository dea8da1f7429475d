// Showing answers.

// Beyond these many classes only the longest are shown, longest first.
const CLASSES_SHOWN = 20;
const TOP = 10;

const $ = (id) => document.getElementById(id);

export function say(words, alarm = false) {
  $("message").textContent = words;
  $("message").classList.toggle("alarm", alarm);
  $("answer").hidden = words !== "";
}

export function showAnswer(prediction, classes) {
  const { scores, capsules, class_ids: winner, class_names: name } = prediction;
  say("");
  $("winner").textContent = name;
  $("score").textContent = scores[winner].toFixed(2);
  $("meaning").textContent = capsules
    ? "Length of each class capsule"
    : "Probability of each class";
  showBars(scores, winner, classes);
  showCapsule(capsules?.[winner], name);
  const milliseconds = Math.max(1, Math.round(prediction.milliseconds));
  $("took").textContent = `Answered in ${milliseconds} ms`;
}

function showBars(scores, winner, classes) {
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
    name.textContent = classes[place] ?? place;
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
  item.children[0].dir = "auto";
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
    bar.className = entry < 0 ? "below" : "above";
    bar.style[entry < 0 ? "top" : "bottom"] = "50%";
    bar.style.height = `${(50 * Math.abs(entry)) / largest}%`;
    return column;
  }));
}

export function minus(number) {
  return number.toFixed(2).replace(/^-0\.00$/, "0.00").replace("-", "−");
}
