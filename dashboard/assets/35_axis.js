/* Cascade.axis: where the ticks of a time axis stand and what they say. Pure. */
"use strict";

Cascade.axis = (() => {
  const SECOND = 1e9;
  const STEPS = [];
  for (let unit = 1; unit < SECOND; unit *= 10) STEPS.push(unit, 2 * unit, 5 * unit);
  for (const seconds of [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400]) {
    STEPS.push(seconds * SECOND);
  }

  /** The smallest round step that leaves at least `room` pixels between ticks. */
  function step(span, width, room = 110) {
    const least = (span * room) / width;
    return STEPS.find((one) => one >= least) || Math.ceil(least / (86400 * SECOND)) * 86400 * SECOND;
  }

  /** Ticks at round times within [a, b]: {step, minor, at: [ns]}. offset: ns added before rounding (UTC). */
  function ticks(a, b, width, room, offset = 0) {
    const distance = step(b - a, width, room);
    const first = Math.ceil((a + offset) / distance) * distance - offset;
    const at = [];
    for (let i = 0; first + i * distance <= b; i += 1) at.push(first + i * distance);
    return { step: distance, minor: distance / 5, at };
  }

  /** ns to add so that ticks fall on round clock times: wall ns of t0 modulo a day. */
  function offset(view) {
    if (view.clockMode === "start" || !view.story) return 0;
    const day = 86400n * 1000000000n;
    const wall = Number(BigInt(view.story.t0_ns) % day);
    if (view.clockMode === "utc") return wall;
    return wall - new Date().getTimezoneOffset() * 60e9;
  }

  /** A tick's text: no more decimals than the step needs. */
  function label(ns, view, distance) {
    if (view.clockMode !== "start") return Cascade.format.time(ns, view, distance).replace(/ \S+$/, "");
    const rounded = Math.abs(ns) < distance / 1e6 ? 0 : ns;
    if (rounded === 0) return "0";
    if (distance >= 60 * SECOND) return coarse(rounded);
    if (distance >= SECOND) return Cascade.format.sinceStart(rounded, SECOND);
    if (Math.abs(rounded) < SECOND && distance >= 1e6) return `${trim(rounded / 1e6, distance / 1e6)} ms`;
    const places = Math.min(9, Math.max(0, Math.ceil(-Math.log10(distance / SECOND) - 1e-9)));
    const minutes = Math.floor(Math.abs(rounded) / 60e9);
    const rest = (Math.abs(rounded) - minutes * 60e9) / SECOND;
    const sign = rounded < 0 ? "-" : "";
    if (!minutes) return `${sign}${rest.toFixed(places)} s`;
    if (minutes < 60) return `${sign}${minutes} m ${rest.toFixed(places).padStart(places + 3, "0")} s`;
    return `${sign}${Math.floor(minutes / 60)} h ${Cascade.format.pad(minutes % 60)} m ${rest.toFixed(places).padStart(places + 3, "0")} s`;
  }

  /** Whole minutes: "30 m", "1 h 00 m". */
  function coarse(ns) {
    const minutes = Math.round(Math.abs(ns) / (60 * SECOND));
    const sign = ns < 0 ? "-" : "";
    const hours = Math.floor(minutes / 60);
    return hours ? `${sign}${hours} h ${Cascade.format.pad(minutes % 60)} m` : `${sign}${minutes} m`;
  }

  function trim(value, distance) {
    return distance >= 1 ? Math.round(value).toString() : value.toFixed(3).replace(/\.?0+$/, "");
  }

  return { ticks, label, offset, step };
})();
