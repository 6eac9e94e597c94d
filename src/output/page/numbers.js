// Numbers and words.

const UNKNOWN = 'unknown';
const HIDDEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{DI}\u00a0\u2000-\u200a\u202f\u205f]/gu;
const SHORT_ESCAPES = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };
const grouped = new Intl.NumberFormat('en-US', { maximumFractionDigits: 3 });
const significant = new Intl.NumberFormat('en-US', { maximumSignificantDigits: 3 });
const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

const isKnown = value => value !== null && value !== undefined;

/** Characters that hide, or that reorder what stands around them, as their code. */
function legible(text) {
  return String(text).replace(HIDDEN, char => SHORT_ESCAPES[char] ?? `\\u{${char.codePointAt(0).toString(16)}}`);
}

/** Tables: milliseconds, as logged. */
function exact(ms) {
  if (!isKnown(ms)) return UNKNOWN;
  return `${ms !== 0 && Math.abs(ms) < 0.001 ? ms.toPrecision(3) : grouped.format(ms + 0)} ms`;
}

/** Drawings and sentences: three significant digits, seconds from one second on. */
function brief(ms) {
  if (!isKnown(ms)) return UNKNOWN;
  if (Math.abs(ms) < 1000) return `${significant.format(ms + 0)} ms`;
  return `${(Math.abs(ms) < 1e6 ? significant : whole).format(ms / 1000)} s`;
}

const signed = (value, format) => (value > 0 ? '+' : value < 0 ? '-' : '') + format(Math.abs(value));
const counted = (value, unit) => isKnown(value) ? `${grouped.format(value)}${unit ? ` ${unit}` : ''}` : UNKNOWN;
const plural = (count, word) => `${whole.format(count)} ${word}${count === 1 ? '' : 's'}`;
const words = name => name.replaceAll('_', ' ');

function percent(share) {
  if (!isKnown(share)) return UNKNOWN;
  if (share > 0 && share < 0.001) return '<0.1 %';
  return `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;
}

/** Where a duration stands among its kind, as short as a drawing needs it. */
function standingText(standing, duration) {
  if (duration > standing.p99_ms) return `above P99 (${brief(standing.p99_ms)})`;
  if (duration > standing.p95_ms) return 'P95 to P99';
  return duration > standing.p50_ms ? 'P50 to P95' : 'up to P50';
}

/** Times in the offset of the origin. Without an origin only the distances on the axis are known. */
class Clock {
  constructor(origin) {
    const parts = /^(.{10}T.{8})(\.\d+)?(Z|[+-]\d\d:\d\d)$/.exec(origin ?? '');
    this.offset = parts ? parts[3] : null;
    this.epoch = parts ? Date.parse(parts[1] + parts[3]) + Number(`0${parts[2] ?? ''}`) * 1000 : NaN;
    const [hours, minutes] = parts && parts[3] !== 'Z' ? parts[3].split(':').map(Number) : [0, 0];
    this.shift = (hours * 60 + (parts?.[3].startsWith('-') ? -minutes : minutes)) * 60000;
  }

  /** `2025-06-01 10:00:00.123 +08:00` of a place on the axis. */
  full(at) {
    const instant = new Date(Number((this.epoch + this.shift + (at ?? NaN)).toFixed(3)));
    return Number.isNaN(instant.getTime()) ? UNKNOWN : `${instant.toISOString().slice(0, 23).replace('T', ' ')} ${this.offset}`;
  }

  time(at) {
    return this.full(at).replace(/^\S+ (?=\d)/, '');
  }

  /** A time of a record, all its digits kept. */
  of(utc) {
    const parts = /^(.{10}T.{8})(\.\d+)?Z$/.exec(utc);
    const instant = new Date(parts ? Date.parse(`${parts[1]}Z`) + this.shift : NaN);
    if (!this.offset || Number.isNaN(instant.getTime())) return utc;
    return `${instant.toISOString().slice(0, 19).replace('T', ' ')}${parts[2] ?? ''} ${this.offset}`;
  }
}

function valueText(name, value, clock) {
  if (!isKnown(value)) return UNKNOWN;
  if (typeof value === 'string') return /^timestamp$|_at$/.test(name) ? clock.of(value) : value;
  if (typeof value !== 'number') return String(value);
  const unit = /_(ms|tokens|mb)$/.exec(name)?.[1];
  if (unit === 'ms') return exact(value);
  // A number without a unit is a label, such as an HTTP status.
  return unit ? counted(value, unit === 'mb' ? 'MB' : unit) : String(value);
}
