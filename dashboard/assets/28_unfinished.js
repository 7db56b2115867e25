/* Cascade.unfinished: whether the figures on the page may still change, and why. Until they cannot, each is marked. */
"use strict";

Cascade.unfinished = (() => {
  const GROWING = ["live", "waiting"];

  /** What is still being read, in words; how far, once that is known. */
  function progress({ what, share }) {
    return share > 0 ? `${what}: ${Cascade.format.percent(Math.round(share * 100) / 100)}` : `${what}…`;
  }

  /** Whether rows may still come: the pulse knows it before the story does. */
  function grows({ story, pulse }) {
    return GROWING.includes((pulse && pulse.state) || (story && story.run.state));
  }

  /** What the server is still reading of this run, {what, share}, or null. */
  function reading({ pulse }) {
    return (pulse && pulse.building) || null;
  }

  /** Why figures of the whole run are not final, in a sentence's end; "" when they are. */
  function why(view) {
    const { story } = view;
    if (!story) return "";
    const now = reading(view);
    if (now) return progress(now);
    if (grows(view)) return "rows still come";
    // Its last rows came after what the page was told.
    if (GROWING.includes(story.run.state) && view.pulse && view.pulse.version !== story.version) return "the end is being read";
    return story.verdict.state === "judging" ? "the run is still being judged" : "";
  }

  /** Why waits are not final: of those the analysis may know more than the rows say. */
  function whyWaits(view) {
    const { waits } = view.story || {};
    return why(view) || (waits && waits.source === "provisional" ? "counted before the analysis" : "");
  }

  return { progress, grows, reading, why, whyWaits };
})();
