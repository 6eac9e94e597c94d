// Elements: every text and attribute of the page passes here.

function dress(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') node.addEventListener(name, value);
    else if (isKnown(value) && value !== false) node.setAttribute(name, value === true ? '' : legible(value));
  }
  for (const child of children.flat()) {
    if (isKnown(child)) node.append(child instanceof Node ? child : legible(child));
  }
  return node;
}

const el = (name, attributes = {}, ...children) => dress(document.createElement(name), attributes, children);
const shape = (name, attributes = {}, ...children) =>
  dress(document.createElementNS('http://www.w3.org/2000/svg', name), attributes, children);
const button = (text, label, click, attributes = {}) =>
  el('button', { type: 'button', 'aria-label': label, title: label, click, ...attributes }, text);

const pen = document.createElement('canvas').getContext('2d');
const fonts = getComputedStyle(document.documentElement).getPropertyValue('--sans');

function textWidth(text, weight = 400) {
  pen.font = `${weight} 13px ${fonts}`;
  return pen.measureText(text).width;
}

/** Cut to the room there is, in the middle: ids of one kind differ in their ends. */
function shortened(text, room, weight) {
  const all = [...legible(text)];
  if (textWidth(all.join(''), weight) <= room) return all.join('');
  let kept = Math.min(all.length - 1, Math.ceil(all.length * room / textWidth(all.join(''), weight)));
  const cut = () => `${all.slice(0, Math.ceil(kept / 2)).join('')}…${all.slice(all.length - Math.floor(kept / 2)).join('')}`;
  while (kept > 0 && textWidth(cut(), weight) > room) kept -= 1;
  return kept > 0 ? cut() : '';
}
