/* Lane "marks": faults, transitions, departures, gaps, violations, each with its own shape. Where they
 * are dense one shape (the worst) stands for all of a place, with their number. */
"use strict";

Cascade.lanes.MarksLane = (() => {
  const ROOM = 24; // pixels that one shape needs, its count included
  const RANK_OF = { error: 0, warning: 1, info: 2 };
  const ORDER = ["violation", "departure", "health", "transition", "gap", "join"];
  const WORDS = {
    violation: "violation", departure: "departure", health: "fault", transition: "transition", gap: "gap", join: "join",
  };

  /** Outlines in a box of 12 x 12 around (x, y). */
  const SHAPES = {
    violation(c, x, y) { polygon(c, [[x - 3, y - 6], [x + 3, y - 6], [x + 6, y - 3], [x + 6, y + 3], [x + 3, y + 6], [x - 3, y + 6], [x - 6, y + 3], [x - 6, y - 3]]); },
    departure(c, x, y) { c.rect(x - 5.5, y - 5.5, 11, 11); },
    health(c, x, y) { polygon(c, [[x, y - 6], [x + 6.5, y + 5.5], [x - 6.5, y + 5.5]]); },
    transition(c, x, y) { polygon(c, [[x, y - 7], [x + 7, y], [x, y + 7], [x - 7, y]]); },
    gap(c, x, y) { c.rect(x - 5.5, y - 3.5, 11, 7); },
    join(c, x, y) { c.arc(x, y, 6, 0, Math.PI * 2); },
  };

  const sorted = new WeakMap(); // story -> its marks, the worst first
  const walks = new WeakMap(); // story -> Map of epoch -> its walks

  function worstFirst(story) {
    if (!sorted.has(story)) {
      sorted.set(story, [...story.marks].sort((x, y) => (RANK_OF[x.severity] ?? 2) - (RANK_OF[y.severity] ?? 2)
        || ORDER.indexOf(x.kind) - ORDER.indexOf(y.kind) || x.at_ns - y.at_ns));
    }
    return sorted.get(story);
  }

  function walksOf(story, epoch) {
    if (!walks.has(story)) walks.set(story, Map.groupBy(story.walks, (walk) => walk.epoch));
    return walks.get(story).get(epoch) || [];
  }

  function polygon(context, points) {
    points.forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
    context.closePath();
  }

  return class MarksLane extends Cascade.lanes.Lane {
    constructor(timeline) {
      super(timeline, "marks", "Faults, transitions");
      this.tip = "marks";
      this.pinned = true;
    }

    height() {
      return 30;
    }

    /** The worst marks stand where they happened; the others join one that is nearer than ROOM. */
    cells() {
      const { timeline } = this;
      const { view, story } = timeline;
      const cells = [];
      for (const mark of worstFirst(story)) {
        if (mark.at_ns < view.a || mark.at_ns > view.b) continue;
        const x = timeline.x(mark.at_ns);
        const near = cells.filter((cell) => Math.abs(cell.x - x) < ROOM);
        if (near.length) near.reduce((one, two) => (Math.abs(two.x - x) < Math.abs(one.x - x) ? two : one)).marks.push(mark);
        else cells.push({ x, marks: [mark] });
      }
      return cells;
    }

    draw(context, y) {
      const { timeline } = this;
      const { tokens, left, plotWidth, story } = timeline;
      this.drawTitle(context, y);
      this.ground(context, y, this.height() - 6, tokens["bg-sunken"]);
      this.shown = this.cells();
      if (!story.marks.length) {
        this.words(context, y, this.height() - 6, "nothing happened: no fault, no transition");
        return;
      }
      context.save();
      context.beginPath();
      context.rect(left - 8, y - 2, plotWidth + 16, this.height());
      context.clip();
      for (const cell of this.shown) this.drawCell(context, cell, y + 12);
      context.restore();
    }

    drawCell(context, { x, marks }, y) {
      const { tokens } = this.timeline;
      const mark = marks[0];
      const colour = { error: tokens.bad, warning: tokens.warn }[mark.severity] || tokens["fg-dim"];
      const filled = mark.kind !== "gap" && mark.kind !== "join";
      context.beginPath();
      (SHAPES[mark.kind] || SHAPES.join)(context, x, y);
      context.fillStyle = filled ? colour : tokens["bg-raised"];
      context.fill();
      context.lineWidth = 1.5;
      context.strokeStyle = filled ? tokens["bg-raised"] : colour;
      context.stroke();
      const letter = this.letter(mark);
      if (letter) {
        context.font = this.timeline.font(9, 700);
        context.textAlign = "center";
        context.textBaseline = "middle";
        context.fillStyle = filled ? tokens["bg-raised"] : colour;
        context.fillText(letter, x, y + (mark.kind === "health" ? 2 : 0.5));
      }
      if (marks.length > 1) this.drawCount(context, x + 7, y - 7, marks.length);
    }

    drawCount(context, x, y, count) {
      const { tokens } = this.timeline;
      const text = count > 99 ? "99+" : String(count);
      context.font = this.timeline.font(9, 600);
      const width = context.measureText(text).width + 6;
      context.fillStyle = tokens["bg-raised"];
      context.strokeStyle = tokens["line-strong"];
      context.lineWidth = 1;
      context.beginPath();
      context.roundRect(x - 3, y - 5, width, 12, 6);
      context.fill();
      context.stroke();
      context.fillStyle = tokens.fg;
      context.textAlign = "center";
      context.textBaseline = "middle";
      context.fillText(text, x - 3 + width / 2, y + 1.5);
    }

    /** The regime a transition leads to, else a sign of the kind. */
    letter(mark) {
      if (mark.kind === "transition") {
        const walk = this.walkOf(mark);
        const to = walk ? this.regimeName(walk.to) : "";
        return to ? to[0] : "";
      }
      return { violation: "!", departure: "×", health: "!", join: "+", gap: "" }[mark.kind] || "";
    }

    regimeName(regime) {
      return typeof regime === "number" ? Cascade.REGIMES[regime] : regime || "";
    }

    walkOf(mark) {
      const { story } = this.timeline;
      const found = walksOf(story, mark.epoch);
      return found.find((walk) => walk.at_ns === mark.at_ns && walk.sentence === mark.sentence)
        || found.find((walk) => walk.at_ns === mark.at_ns) || found[0] || null;
    }

    /** What selecting a mark selects. */
    selOf(mark) {
      const { story } = this.timeline;
      if (mark.kind === "transition") {
        const walk = this.walkOf(mark);
        if (walk) return Cascade.seek.walkSel(walk);
      }
      if (mark.kind === "violation") {
        const found = story.violations.find((one) => one.at_ns === mark.at_ns && one.rank === mark.rank);
        if (found) return `violation:${found.id}`;
      }
      return mark.rank === null || mark.rank === undefined ? null : `rank:${mark.rank}`;
    }

    note() {
      const { story } = this.timeline;
      const { num_violations = 0 } = story.verdict;
      if (num_violations > story.violations.length) {
        return `showing the first ${Cascade.format.count(story.violations.length)} of ${Cascade.plural(num_violations, "violation")}`;
      }
      const total = story.num_marks ?? story.marks.length;
      return total > story.marks.length
        ? `showing ${Cascade.format.count(story.marks.length)} of ${Cascade.format.count(total)}` : "";
    }

    /** Why the lane of who left does not end here: its last row was earlier. */
    earlier(mark) {
      if (mark.kind !== "departure") return "";
      const { lookup } = this.timeline;
      const life = (lookup.lives.get(mark.rank) || []).find((one) => one.incarnation === mark.incarnation);
      if (!life || lookup.lateness(life) === null) return "";
      return `Its lane ends ${Cascade.format.duration(mark.at_ns - life.last_ns)} earlier, with its last row: only then was it seen to be gone.`;
    }

    reading(t, y, x) {
      const cell = (this.shown || []).find((one) => Math.abs(one.x - x) <= 10);
      if (!cell) return { lines: [], rank: null, sel: null };
      const lines = cell.marks.slice(0, 4).flatMap((mark) => [mark.sentence || WORDS[mark.kind] || mark.kind, this.earlier(mark)]).filter(Boolean);
      if (cell.marks.length > 4) lines.push(`and ${Cascade.plural(cell.marks.length - 4, "more", "more")}: zoom in`);
      const mark = cell.marks[0];
      return { lines, rank: mark.rank ?? null, sel: this.selOf(mark), at_ns: mark.at_ns };
    }
  };
})();
