/* Cascade.format: numbers, durations and times in words. Times in are ns since t0. */
"use strict";

Cascade.format = (() => {
  const MICRO = 1e3;
  const MILLI = 1e6;
  const SECOND = 1e9;
  const MINUTE = 60 * SECOND;
  const HOUR = 60 * MINUTE;

  /** 1234567 -> "1,234,567". */
  function count(value) {
    return Math.round(value).toString().replace(/\B(?=(\d{3})+(?!\d))/g, ",");
  }

  /** Three significant digits, never an exponent: 0.00123, 1.23, 12.3, 123, 1,234. */
  function number(value) {
    if (value === null || value === undefined || Number.isNaN(value)) return "unknown";
    const size = Math.abs(value);
    if (size >= 100) return count(value);
    if (size === 0) return "0";
    const digits = Math.min(6, Math.max(0, 2 - Math.floor(Math.log10(size))));
    return trim(value.toFixed(digits));
  }

  function trim(text) {
    return text.includes(".") ? text.replace(/0+$/, "").replace(/\.$/, "") : text;
  }

  /** Share 0..1 -> "11.1%"; with a base: "11.1% of 281 GPU-h". A part is never rounded to all or none. */
  function percent(share, base) {
    const value = share * 100;
    let text = value < 10 && value > 0 ? trim(value.toFixed(2)) : trim(value.toFixed(1));
    if (share > 0 && Number(text) === 0) text = "<0.01";
    if (share < 1 && Number(text) === 100) text = ">99.9";
    return base ? `${text}% of ${base}` : `${text}%`;
  }

  /** A length of time, unit by size: "850 ns", "12.3 ms", "1.24 s", "3 m 04 s", "4 h 24 m". */
  function duration(ns) {
    if (ns === null || ns === undefined || Number.isNaN(ns)) return "unknown";
    if (ns < 0) return `-${duration(-ns)}`;
    if (ns === 0) return "0 s";
    if (ns < MICRO) return `${Math.round(ns)} ns`;
    if (ns < 0.9995 * MILLI) return `${number(ns / MICRO)} µs`;
    if (ns < 0.9995 * SECOND) return `${number(ns / MILLI)} ms`;
    if (ns < 59.95 * SECOND) return `${number(ns / SECOND)} s`;
    if (ns < HOUR - SECOND / 2) {
      const whole = Math.round(ns / SECOND);
      return `${Math.floor(whole / 60)} m ${pad(whole % 60)} s`;
    }
    const minutes = Math.round(ns / MINUTE);
    return `${Math.floor(minutes / 60)} h ${pad(minutes % 60)} m`;
  }

  /** Seconds (as in the story's waits) as a length of time. */
  function seconds(value) {
    return value === null || value === undefined ? "unknown" : duration(value * SECOND);
  }

  function pad(value, width = 2) {
    return String(value).padStart(width, "0");
  }

  /** Decimals that tell apart two times `step` ns away from each other (0, 3, 6 or 9). */
  function decimals(step) {
    if (step >= SECOND) return 0;
    if (step >= MILLI) return 3;
    return step >= MICRO ? 6 : 9;
  }

  /** Time since job start: "12.345 s", "1 m 12.345 s", "2 h 03 m 12 s". step: see decimals. */
  function sinceStart(ns, step = MILLI) {
    if (ns < 0) return `-${sinceStart(-ns, step)}`;
    const places = decimals(step);
    const unit = 10 ** (9 - places);
    const whole = Math.round(ns / unit) * unit;
    const hours = Math.floor(whole / HOUR);
    const minutes = Math.floor((whole % HOUR) / MINUTE);
    const rest = (whole % MINUTE) / SECOND;
    const text = rest.toFixed(places);
    if (hours) return `${hours} h ${pad(minutes)} m ${places ? text.padStart(places + 3, "0") : pad(text)} s`;
    if (minutes) return `${minutes} m ${places ? text.padStart(places + 3, "0") : pad(text)} s`;
    return `${text} s`;
  }

  /** A Date and the ns inside its millisecond of ns since t0; t0_ns is wall ns as a string. */
  function wall(ns, t0_ns) {
    const at = BigInt(t0_ns) + BigInt(Math.round(ns));
    return { date: new Date(Number(at / 1000000n)), fraction: Number(at % 1000000000n) };
  }

  function fraction(ns, step) {
    const places = decimals(step);
    return places ? `.${pad(ns, 9).slice(0, places)}` : "";
  }

  /** "12:01:05.123 UTC"; with day: "2026-11-29 12:01:05.123 UTC". */
  function utc(ns, t0_ns, step = MILLI, day = false) {
    const { date, fraction: rest } = wall(ns, t0_ns);
    const text = date.toISOString();
    return `${day ? `${text.slice(0, 10)} ` : ""}${text.slice(11, 19)}${fraction(rest, step)} UTC`;
  }

  /** Local time with its zone: "13:01:05.123 +01:00". */
  function local(ns, t0_ns, step = MILLI, day = false) {
    const { date, fraction: rest } = wall(ns, t0_ns);
    const offset = -date.getTimezoneOffset();
    const zone = `${offset < 0 ? "-" : "+"}${pad(Math.floor(Math.abs(offset) / 60))}:${pad(Math.abs(offset) % 60)}`;
    const clock = `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
    const date_text = `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())} `;
    return `${day ? date_text : ""}${clock}${fraction(rest, step)} ${zone}`;
  }

  /** The time as the reader asked for it: view.clockMode start | utc | local. */
  function time(ns, view, step = MILLI) {
    const t0_ns = view.story ? view.story.t0_ns : null;
    if (t0_ns && view.clockMode === "utc") return utc(ns, t0_ns, step);
    if (t0_ns && view.clockMode === "local") return local(ns, t0_ns, step);
    return sinceStart(ns, step);
  }

  return {
    count, number, percent, duration, seconds, sinceStart, utc, local, time, decimals, pad,
  };
})();
