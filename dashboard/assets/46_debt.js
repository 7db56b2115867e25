/* Lane "debt": how many debts were open and how many updates in flight, as steps. */
"use strict";

Cascade.lanes.DebtLane = class DebtLane extends Cascade.lanes.Lane {
  constructor(timeline) {
    super(timeline, "debt", "Debt open, in flight");
    this.tip = "debt";
  }

  height() {
    return this.timeline.story.debts.length ? 48 : 28;
  }

  draw(context, y) {
    const { timeline } = this;
    const { tokens, lookup } = timeline;
    const height = this.height() - 6;
    this.drawTitle(context, y);
    this.ground(context, y, height);
    const steps = lookup.debts;
    if (!steps.at.length) {
      this.words(context, y, height, "no debt was opened in this run");
      return;
    }
    // Updates in flight reach three quarters of the height, so that the two lines can be told apart.
    if (steps.most_in_flight) {
      this.drawSteps(context, steps, steps.in_flight, steps.most_in_flight / 0.75, y, height, tokens.fg, false);
    }
    this.drawSteps(context, steps, steps.open, steps.most_open, y, height, tokens.debt, true);
    context.font = timeline.font(10);
    context.fillStyle = tokens["fg-dim"];
    context.textAlign = "left";
    context.textBaseline = "middle";
    const x = timeline.left + timeline.plotWidth + 6;
    context.fillText(timeline.cut(context, `most ${steps.most_open}`, timeline.right - 8), x, y + 7);
    if (steps.most_in_flight) {
      context.fillText(timeline.cut(context, `${Cascade.format.count(steps.most_in_flight)} in flight`, timeline.right - 8), x, y + 21);
    }
  }

  /** One step function over the window; between two pixels the highest value is kept. */
  drawSteps(context, steps, values, most, y, height, colour, filled) {
    const { timeline } = this;
    const { view, left, plotWidth } = timeline;
    const level = (value) => y + height - 1 - (height - 6) * (value / Math.max(most, 1));
    let i = Cascade.lookup.lastUpTo(steps.at, view.a);
    let value = i < 0 ? 0 : values[i];
    context.beginPath();
    context.moveTo(left, level(value));
    let drawn = -1;
    for (i += 1; i < steps.at.length && steps.at[i] < view.b; i += 1) {
      const x = timeline.x(steps.at[i]);
      if (Math.round(x) === drawn && values[i] <= value && i + 1 < steps.at.length && timeline.x(steps.at[i + 1]) - x < 0.5) continue;
      context.lineTo(x, level(value));
      value = values[i];
      context.lineTo(x, level(value));
      drawn = Math.round(x);
    }
    const end = Math.min(timeline.x(timeline.view.t1), left + plotWidth);
    context.lineTo(Math.max(end, left), level(value));
    context.lineWidth = filled ? 1.6 : 1.2;
    context.strokeStyle = colour;
    context.setLineDash(filled ? [] : [3, 2]);
    context.stroke();
    context.setLineDash([]);
    if (!filled) return;
    context.lineTo(Math.max(end, left), y + height);
    context.lineTo(left, y + height);
    context.fillStyle = timeline.tokens.css(timeline.tokens.rgb(colour), 0.16);
    context.fill();
  }

  note(t) {
    const { lookup, story } = this.timeline;
    if (!story.debts.length) return "";
    const now = lookup.debtAt(t);
    return `${now.open} open, ${now.in_flight} in flight`;
  }

  reading(t) {
    const { story, lookup } = this.timeline;
    const now = lookup.debtAt(t);
    const open = story.debts.filter((debt) => debt.opened_ns <= t && !(debt.closed_ns !== null && debt.closed_ns <= t));
    const lines = [`${Cascade.plural(now.open, "debt")} open, ${Cascade.plural(now.in_flight, "update")} in flight`];
    for (const debt of open.slice(0, 3)) {
      const waits = debt.waits_for ? `, waits for ${debt.waits_for}` : "";
      lines.push(`${debt.object} relaxed ${debt.relaxed}, ${Cascade.format.duration(t - debt.opened_ns)} old${waits}`);
    }
    if (open.length > 3) lines.push(`and ${open.length - 3} more`);
    return { lines, rank: null, sel: null };
  }
};
