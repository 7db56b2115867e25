/* The card beside the mouse: when, who, and what is under it; over a lane's title what the lane shows. */
"use strict";

/** What a lane shows, in words, beside its title. */
Cascade.showTip = ({ card, left, height }, point, title, words) => {
  const { el, replace } = Cascade;
  replace(card, el("div", { class: "ct-card-time", text: title }), el("div", { class: "ct-card-line", text: words }));
  card.hidden = false;
  const y = Cascade.clamp(point.y + 12, 0, Math.max(0, height - card.offsetHeight));
  card.style.transform = `translate(${left}px, ${Math.round(y)}px)`;
};

Cascade.showCard = (() => {
  const { el, replace, format } = Cascade;

  /** The step of the run at t, where the last state answer knows it for this rank. */
  function stepText(timeline, rank) {
    const { state, view } = timeline;
    if (!state || !view.hover || Math.abs(state.t_ns - view.hover.t) > view.span / 200) return null;
    const steps = state.ranks.filter((row) => (rank === null || row.rank === rank) && Number.isFinite(row.step)).map((row) => row.step);
    if (!steps.length) return null;
    const [low, high] = [Math.min(...steps), Math.max(...steps)];
    return low === high ? `step ${low}` : `steps ${low} to ${high}`;
  }

  /** Asks for the state where the mouse rests, so that the card can name the step. */
  const rest = Cascade.throttle(async (timeline) => {
    const { hover } = timeline.view;
    if (!hover || timeline.offline || hover.t < 0 || hover.t > timeline.view.t1) return;
    try {
      timeline.state = await timeline.source.state(hover.t);
      if (timeline.lastCard && !timeline.card.hidden) showCard(...timeline.lastCard, true);
    } catch (error) {
      if (!(error instanceof Cascade.Problem)) console.error(error);
    }
  }, 250);

  function showCard(timeline, point, t, lane, hit, again = false) {
    const { card, view, width, story } = timeline;
    timeline.lastCard = [timeline, point, t, lane, hit];
    const step = Math.min(1e6, view.span / timeline.plotWidth);
    const when = [format.sinceStart(t, step), format.utc(t, story.t0_ns, step)];
    if (view.clockMode === "local") when.push(format.local(t, story.t0_ns, step));
    const who = [hit.row, lane ? lane.title : null].filter(Boolean).join(", ");
    const at = stepText(timeline, hit.rank);
    replace(card,
      el("div", { class: "ct-card-time", text: when[0] }, at ? el("span", { class: "ct-card-dim", text: `  ${at}` }) : null),
      el("div", { class: "ct-card-dim", text: when.slice(1).join("  ") }),
      who ? el("div", { class: "ct-card-who", text: who }) : null,
      hit.lines.map((line) => el("div", { class: "ct-card-line", text: line })),
    );
    card.hidden = false;
    const box = { width: card.offsetWidth, height: card.offsetHeight };
    const x = point.x + 16 + box.width < width ? point.x + 16 : point.x - 16 - box.width;
    const y = Cascade.clamp(point.y + 16, 0, Math.max(0, timeline.height - box.height));
    card.style.transform = `translate(${Math.round(Math.max(0, x))}px, ${Math.round(y)}px)`;
    if (!again) rest(timeline);
  }

  return showCard;
})();

/* Under a mouse at rest something else may be drawn by now: what was loading is there, or the window moved. */
Cascade.renewCard = (timeline) => {
  if (timeline.card.hidden || !timeline.lastCard) return;
  const [, point] = timeline.lastCard;
  const lane = timeline.laneAt(point.y);
  const t = timeline.time(point.x);
  const hit = lane ? lane.reading(t, point.y - timeline.topOf(lane), point.x) : { lines: [], rank: null };
  Cascade.showCard(timeline, point, t, lane, hit, true);
};
