/* Cascade.ServerSource: a run as the server answers it. Every method may throw Cascade.Problem. */
"use strict";

Cascade.ServerSource = (() => {
  const PATIENCE_MS = 15000;

  /** Body of the tile route -> {a, b, w, version, upto_ns, source, building, layers: {lane: layer}}.
   * layer: {rows, cols, code, peers, data: Uint8Array of rows x cols}; peers: how many times its own time a full
   * pixel stands for. Throws Problem on a torn body. */
  function decodeTile(buffer) {
    const broken = () => new Cascade.Problem("bad", "the server sent a picture that cannot be read; reload the page");
    if (buffer.byteLength < 4) throw broken();
    const length = new DataView(buffer).getUint32(0, true);
    if (4 + length > buffer.byteLength) throw broken();
    let head;
    try {
      head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
    } catch {
      throw broken();
    }
    const begin = 4 + length; // the head's padding counts as head
    const layers = {};
    for (const layer of head.layers) {
      const size = layer.rows.length * layer.cols;
      if (begin + layer.offset + size > buffer.byteLength) throw broken();
      layers[layer.lane] = {
        rows: layer.rows, cols: layer.cols, code: layer.code, peers: layer.peers || 1,
        data: new Uint8Array(buffer, begin + layer.offset, size),
      };
    }
    return { ...head, layers };
  }

  class ServerSource {
    /** base: "" or a prefix without a slash at its end. */
    constructor(base, run_id) {
      this.base = base;
      this.run_id = run_id;
      this.isLive = true; // rows may come; watch() learns from the story when none will
      this.lastStory = null;
    }

    async ask(path, parameters = {}, { signal } = {}) {
      const query = new URLSearchParams(
        Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined),
      ).toString();
      const url = `${this.base}/v1/runs/${encodeURIComponent(this.run_id)}/${path}${query ? `?${query}` : ""}`;
      const patience = AbortSignal.timeout(PATIENCE_MS);
      let answer;
      try {
        answer = await fetch(url, {
          signal: signal ? AbortSignal.any([signal, patience]) : patience, credentials: "same-origin",
        });
      } catch (error) {
        if (signal && signal.aborted) throw error;
        throw new Cascade.Problem("gone", "the collector does not answer");
      }
      if (answer.ok || answer.status === 304) return answer;
      if (answer.status === 401 || answer.status === 403) {
        throw new Cascade.Problem("refused", "you are not signed in to this collector: open the address it printed");
      }
      if (answer.status === 404) {
        throw new Cascade.Problem("not_found", `there is no run ${this.run_id} here: choose one on the Runs page`);
      }
      if (answer.status >= 500) throw new Cascade.Problem("gone", `the collector answers ${answer.status}`);
      throw new Cascade.Problem("bad", `the collector refused the question (${answer.status})`);
    }

    /** The story; the very object of last time when nothing changed. soon: null where it takes long to tell. */
    async story({ soon = false } = {}) {
      const version = this.lastStory ? this.lastStory.version : undefined;
      // The document asks for the first one by this very address (dashboard/shell/run_document.py).
      const answer = await this.ask("story", { packed: 1, soon: soon ? 1 : null, if_version: version });
      if (answer.status === 204) return null;
      if (answer.status !== 304) this.lastStory = Cascade.decodeStory(await answer.arrayBuffer());
      return this.lastStory;
    }

    /** The wall clock that times count from, as text; "" before there is a story. */
    get t0() {
      return this.lastStory ? this.lastStory.t0_ns : "";
    }

    async pulse() {
      return (await this.ask("pulse")).json();
    }

    async state(t) {
      return (await this.ask("state", { t: Math.round(t) })).json();
    }

    /** Arrays behind the busy lanes for [a, b] in w pixels; lanes: names; ranks: list or null (all). */
    async tile(a, b, w, lanes, ranks, { signal } = {}) {
      const parameters = {
        t0: this.t0 || null, // a live run's may move, and what was asked for then lies elsewhere
        a: Math.round(a), b: Math.round(b), w, lanes: lanes.join(","), ranks: ranks ? ranges(ranks) : null,
      };
      return decodeTile(await (await this.ask("tile", parameters, { signal })).arrayBuffer());
    }

    /** Exact numbers of a window; regimes are those of one group. */
    async window(a, b, { signal, group } = {}) {
      return (await this.ask("window", { a: Math.round(a), b: Math.round(b), group }, { signal })).json();
    }
  }

  /** [0, 1, 2, 7] -> "0-2,7". */
  function ranges(ranks) {
    return Cascade.rankSet(ranks).slice(1, -1).replace(/ /g, "");
  }

  ServerSource.decodeTile = decodeTile;
  return ServerSource;
})();
