/* The stage of the panels' tests: a real run from the server, or a story that the test gives. */
"use strict";

window.stage = {
  frames: [], // what asked for an animation frame: the test lets it run
  asked: [], // questions to the source

  /** run: its id. change: fields of the story that the test puts in the place of the real ones. */
  async play({ run, change = null, offline = false }) {
    const source = new Cascade.ServerSource("", run);
    const { asked } = window.stage;
    const tell = source.story.bind(source);
    source.story = async () => {
      const story = await tell();
      return change ? { ...story, ...change } : story;
    };
    const pulse = source.pulse.bind(source);
    source.pulse = async () => ({ ...(await pulse()), ...(change && change.run ? { state: change.run.state } : {}) });
    for (const name of ["state", "window"]) {
      const ask = source[name].bind(source);
      source[name] = (...values) => {
        asked.push([name, ...values]);
        return ask(...values);
      };
    }
    source.tile = async (a, b, w) => ({ a, b, w, version: "none", upto_ns: b, source: "judged", building: null, layers: {} });
    const { clock } = Cascade.panels.replay;
    clock.request = (fn) => window.stage.frames.push(fn);
    clock.cancel = () => { window.stage.frames.length = 0; };
    const view = new Cascade.View({ theme: "light" });
    Object.assign(window.stage, { source, view });
    window.stage.mounted = Cascade.mount(document.getElementById("stage"), { source, view, offline });
    await window.stage.mounted.ready;
  },

  /** Lets the waiting frames run as if it were `ms` milliseconds. */
  frame(ms) {
    for (const fn of window.stage.frames.splice(0)) fn(ms);
  },
};
