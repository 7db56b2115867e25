/* Cascade.words: what each word of the page means, in a sentence or two. Cascade.word: a word with its tip.
 *
 * The tip opens on hover and on focus, closes on Escape, and can itself be hovered.
 */
"use strict";

Cascade.words = {
  regime: "What the ranks of one group may disagree about right now: STRONG, CAUSAL or EVENTUAL.",
  STRONG: "Every rank takes each step together with the others: one state, one order.",
  CAUSAL: "A rank may lag, but never sees an update before the updates that caused it.",
  EVENTUAL: "Ranks go on alone and agree later. What was relaxed is kept as debt.",
  "no row": "This rank sent nothing here: not come yet, gone, or silent. It is not STRONG. The lane of who was killed ends with its last row, just before the death is seen.",
  epoch: "A number that grows by one at every change of regime, members or cohorts; all members that have it agree on all three.",
  walk: "An agreed step from one epoch to the next: proposed, acknowledged, committed.",
  transition: "A walk that was committed: the group is in the new epoch from there on.",
  fault: "A health signal that was judged to matter, such as GPU_FAIL_STOP or LINK_DELAY_HIGH.",
  cohort: "Ranks that step together by one reduction. STRONG has one cohort.",
  debt: "What was relaxed and must be settled before the group may climb back.",
  "updates in flight": "Updates issued and not yet applied everywhere when the debt was opened.",
  frontier: "What a rank has seen: for each rank, the number of its updates that were folded in. The same as clock.",
  clock: "What a rank has seen: for each rank, the number of its updates that were folded in. The same as frontier.",
  actor: "One life of a rank. A rank that was restarted is another actor.",
  incarnation: "Which life of the rank this is, counted from 0.",
  waited: "Time this rank stood in a collective until the last one came.",
  caused: "Time that others waited for this rank alone: a wait counts in full for the one rank with at least half of its blame, else for nobody. \"Blamed\" divides it.",
  blamed: "Its share of all waiting, traced to the first delay: who came last together divide a wait. \"Caused\" counts a wait for one rank or nobody, so they differ.",
  "came last": "Time that others waited while this rank was the last to come. What made it late, only the analysis tells: that is blamed.",
  "took part": "Ranks train. Agents stand beside them, one a host: they watch the ranks, agree on walks, write part of the record, and have no lane.",
  agent: "The process beside the ranks of one host that watches them, agrees on walks and writes part of the record. It trains nothing.",
  "wasted barrier time": "Time that ranks stood waiting for the last one at a barrier.",
  violation: "A promise of the regime that was broken, with the rows that prove it.",
  verdict: "ok, violated, or unknown: evidence is missing. Unknown is never fine.",
  gap: "Rows that are known to be missing: dropped, overwritten or not supplied.",
  silent: "No row for far longer than this rank's rows are usually apart, while the run went on.",
  missing: "A rank of the job that is not a member of this epoch, or never sent a row.",
  "fleet share": "Which share of the ranks was in which regime.",
  marks: "Faults, changes of regime, departures, gaps and violations, each at its moment.",
  "process CPU busy": "CPU time of the training process over wall time. It is not GPU utilisation.",
  "GPU utilisation": "Share of time in which a kernel ran, as the driver samples it.",
  incident: "Something a person should look at, with all that belongs to it: a violation, a hang, a loss, an excursion, silence, a gap, a wait. Worst first.",
  members: "The ranks that the group counts on in this epoch.",
  "in flight": "Updates that were issued and are not yet folded in here.",
  dot: "The name of one update: the rank that made it, its incarnation and a counter, as in 2:17.",
  lag: "How many steps this rank is behind the one that is furthest ahead.",
  step: "One pass of training: forward, backward, reduce, update.",
  seq: "The position of a row in what its rank recorded, counted from 0 without holes.",
  rank: "One process of the job, numbered from 0.",
  "rank-seconds": "Seconds added up over the ranks: four ranks that wait one second make four rank-seconds.",
  exposed: "Waiting that no computing hid: the device was idle meanwhile.",
  raw: "Waiting as measured at the barrier, whether or not the device computed meanwhile.",
  judged: "Taken from the analysis of all rows up to the time given.",
  provisional: "Counted from rows as they come in; the analysis may still correct it.",
  "verdict unknown": "Evidence is missing, so it cannot be said whether the promise was kept. Unknown is never fine.",
  "not checked": "The rows that this rule needs were not recorded, so nothing is said either way.",
  evidence: "The rows that prove a violation, in order, each with how it follows from the one before.",
  inferred: "Concluded from another tool's evidence; never enough to call a run broken.",
  excursion: "The time from leaving STRONG until the group is back in it.",
  straggler: "A rank that comes last again and again, so that the others wait for it.",
  "logical order": "Events spaced by their order alone, not by time: needed when clocks disagree.",
  observe: "The mode that records what the policy would do and changes nothing in the job.",
  enforce: "The mode in which the policy really changes the regime of the job.",
  imported: "Made from another tool's evidence. What that tool did not record is said.",
  "skip quiet": "While playing, jump over long stretches in which nothing is marked.",
  drift: "How far the parameters moved apart while the promise was relaxed.",
};

Cascade.word = (() => {
  const GAP_PX = 4;
  const EDGE_PX = 8;
  let num_tips = 0;
  let open = null;

  function place(button, tip) {
    tip.hidden = false;
    const at = button.getBoundingClientRect();
    const { offsetWidth: width, offsetHeight: height } = tip;
    const right = Math.max(EDGE_PX, window.innerWidth - width - EDGE_PX);
    const below = at.bottom + GAP_PX;
    const above = Math.max(EDGE_PX, at.top - height - GAP_PX);
    tip.style.left = `${Cascade.clamp(at.left, EDGE_PX, right)}px`;
    tip.style.top = `${below + height < window.innerHeight ? below : above}px`;
  }

  function close() {
    if (open) open.hidden = true;
    open = null;
  }

  // In the capture phase: Escape closes the tip first, and only the next one clears the selection.
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !open) return;
    close();
    event.stopPropagation();
    event.preventDefault();
  }, true);
  window.addEventListener("scroll", close, true);

  /** word("debt") or word("debt", "open debt"): an element for running text; no such word: plain text. */
  return function word(term, label = term) {
    if (!Object.hasOwn(Cascade.words, term)) return Cascade.el("span", { text: label });
    num_tips += 1;
    const id = `cascade-tip-${num_tips}`;
    const tip = Cascade.el("span", {
      class: "cw-tip", text: Cascade.words[term], attrs: { id, role: "tooltip", hidden: true },
    });
    const show = () => {
      if (open !== tip) close();
      open = tip;
      place(button, tip);
    };
    const button = Cascade.el("button", {
      class: "cw-word",
      text: label,
      attrs: { type: "button", "aria-describedby": id },
      on: {
        focus: show,
        blur: close,
        click: (event) => {
          event.preventDefault();
          event.stopPropagation();
          show();
        },
      },
    });
    return Cascade.el("span", {
      class: "cw-box",
      on: { mouseenter: show, mouseleave: () => document.activeElement !== button && close() },
    }, button, tip);
  };
})();
