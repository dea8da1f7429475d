// Asking the server.

// Photographs too large for the server are redrawn at this size.
const LONGEST_SIDE = 1024;
// What the server reads itself, upright: it is sent as it is.
const SENT_AS_IT_IS = ["image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp"];

export class Trouble extends Error {}

export async function request(path, options) {
  try {
    return await fetch(path, options);
  } catch {
    throw new Trouble("The server does not answer. Is it still running?");
  }
}

export async function learn() {
  return (await request("page.json")).json();
}

export function predictPath(about) {
  return `v1/models/${encodeURIComponent(about.name)}:predict`;
}

export async function predict(blob, about) {
  const body = JSON.stringify({
    signature_name: "serving_bytes",
    instances: [{ b64: await base64(blob) }],
  });
  const start = performance.now();
  const response = await request(predictPath(about), { method: "POST", body });
  const milliseconds = performance.now() - start;
  if (!response.ok) throw new Trouble(await reason(response));
  const [prediction] = (await response.json()).predictions;
  return { ...prediction, milliseconds };
}

// What the decoder draws of the longest of some capsules: rows of pixels.
export async function reconstruct(capsules, about) {
  const body = JSON.stringify({ signature_name: "reconstruct", instances: [capsules] });
  const response = await request(predictPath(about), { method: "POST", body });
  if (!response.ok) throw new Trouble(await reason(response));
  return (await response.json()).predictions[0];
}

// The image that the network is given, or null where the server cannot tell.
export async function seen(blob) {
  const response = await request("seen", { method: "POST", body: blob });
  return response.ok ? response.blob() : null;
}

// A file as the server takes it.
export async function sendable(file, about) {
  let bitmap;
  try {
    bitmap = await createImageBitmap(file);
  } catch {
    throw new Trouble("This file is not an image that the browser can read.");
  }
  const megapixels = (bitmap.width * bitmap.height) / 1e6;
  const fits = file.size * 1.34 + 200 < about.max_megabytes * 1e6
    && megapixels <= about.max_megapixels;
  return fits && SENT_AS_IT_IS.includes(file.type) ? file : redrawn(bitmap);
}

export function png(canvas) {
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
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
