/* Cascade.ReportSource: a run as its report file holds it; answers what Cascade.ServerSource answers. */
"use strict";

Cascade.ReportSource = class ReportSource {
  /** Reads the file's blocks. Throws Cascade.Problem when they cannot be read. */
  static async open() {
    const [head, regimes, states, sums, tiles] = await Promise.all([
      Cascade.unpack.json("story"), Cascade.unpack.bytes("regimes"), Cascade.unpack.bytes("states"),
      Cascade.unpack.bytes("sums"), Cascade.unpack.bytes("tiles"),
    ]);
    return new ReportSource(head, { regimes, states, sums, tiles });
  }

  constructor(head, { regimes, states, sums, tiles }) {
    this.head = head;
    this.told = { ...head.story, regimes: Cascade.unpack.regimes(regimes, head.regimes) };
    this.run_id = this.told.run.run_id;
    this.isLive = false;
    this.tiles = new Cascade.HeldTiles(head.tiles, tiles)
      .withSums({ num: head.sums.num, ...Cascade.unpack.columns(sums, head.sums.columns) });
    this.states = new Cascade.HeldState(this.told, head.states, states);
  }

  async story() {
    return this.told;
  }

  async pulse() {
    const { version, t1_ns, run } = this.told;
    return {
      version, tiles_version: this.head.tiles.version, t1_ns, state: run.state, num_rows: run.num_rows,
      rows_per_s: 0, last_row_age_s: null, building: null,
    };
  }

  async state(t) {
    return this.states.at(Math.round(t));
  }

  async tile(a, b, w, lanes, ranks) {
    return this.tiles.tile(Math.round(a), Math.round(b), w, lanes, ranks);
  }

  /** A window by rank: regimes as exact as the file's, waits as its columns tell (`about`). */
  async window(a, b, { group: wanted } = {}) {
    const { told, tiles } = this;
    const group = [wanted, "world"].find((name) => told.groups.includes(name)) ?? told.groups[0];
    const isMeasured = told.measured.waits.state === "measured";
    const isWhole = a <= 0 && b >= told.t1_ns;
    // Of the whole run the file holds the lanes' exact sums.
    const [waited, caused] = ["waited", "caused"].map((lane, i) => (
      isWhole ? new Map(this.head.wait_sums.map((row) => [row[0], row[i + 1]])) : tiles.seconds(lane, a, b)));
    const { by_rank, whole } = this.regimeTimes(group, a, b);
    return {
      group,
      about: !isWhole,
      without: ["gpu", "cpu"],
      note: `${isWhole ? "" : `Waits are about right: this file holds ${Cascade.format.duration(tiles.column_ns)} a column. `}`
        + "GPU and CPU by rank are not in this file; cascade replay TRACE has them where they were measured.",
      by_rank: told.ranks.map((rank) => ({
        rank, waited_s: isMeasured ? waited.get(rank) || 0 : null, caused_s: isMeasured ? caused.get(rank) || 0 : null,
        regimes: shares(by_rank.get(rank) || [0, 0, 0]),
        gpu_median: null, gpu_min: null, cpu_median: null,
      })),
      regime_share: shares(whole),
      source: isMeasured ? this.head.tiles.source : null,
    };

    function shares(times) {
      const sum = times.reduce((x, y) => x + y, 0);
      return Object.fromEntries(times.map((time, i) => [Cascade.REGIMES[i], time / sum]).filter(([, share]) => share > 0));
    }
  }

  regimeTimes(of, a, b) {
    const { regimes } = this.told;
    const { regime, start_ns, end_ns } = regimes;
    const by_rank = new Map();
    const whole = [0, 0, 0];
    for (const [rank, [begin, end]] of Cascade.rankRanges(regimes, of)) {
      const times = [0, 0, 0];
      for (let i = begin; i < end; i += 1) {
        const length = Math.min(end_ns[i], b) - Math.max(start_ns[i], a);
        if (length > 0) times[regime[i]] += length;
      }
      by_rank.set(rank, times);
      times.forEach((time, code) => { whole[code] += time; });
    }
    return { by_rank, whole };
  }

  /** What a lane says when a pixel is shorter than what is held; "" when it is not. */
  coarse(pixel_ns) {
    const { column_ns } = this.tiles;
    if (pixel_ns >= column_ns * 0.999) return "";
    return `this file holds ${Cascade.format.duration(column_ns)} a column; cascade replay TRACE zooms further`;
  }

  /** Sentences on what is in the file and what is not. */
  limits() {
    const { format, plural } = Cascade;
    const { told, tiles, head } = this;
    const { regimes } = head;
    const said = [
      `Waits, GPU and CPU are held in ${format.count(tiles.cols)} columns of ${format.duration(tiles.column_ns)}; cascade replay TRACE zooms further.`,
      `Step and seq of each rank are held every ${format.duration(head.states.every_ns)}. Clocks, updates in flight, and GPU and CPU of single ranks are not in this file.`,
    ];
    if (regimes.unit_ns > 1) said.push(`Times of regimes are rounded to ${format.duration(regimes.unit_ns)}.`);
    if (regimes.merged_ns) {
      said.push(`Inside stretches of ${format.duration(regimes.merged_ns)} only the time in each regime is held, not its order (${plural(regimes.num_merged, "interval")} fewer); no excursion is left out.`);
    }
    const num = told.verdict.num_violations + told.verdict.num_inferred;
    if (num > told.violations.length) {
      said.push(`${format.count(told.violations.length)} of ${plural(num, "violation")} are in this file; cascade analyze TRACE lists all.`);
    }
    if (told.num_marks > told.marks.length) said.push(`${format.count(told.marks.length)} of ${plural(told.num_marks, "mark")} are in this file, errors first.`);
    return said;
  }
};
