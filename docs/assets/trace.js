// Figures that a reader steps through. Each step was drawn when the site was built; here are only
// the differences between them, which this script applies by id. See docs/_hooks/traces.py.
(() => {
  "use strict";

  // The whole of each step: id -> attribute -> value; "" is the text, and null is none.
  const unpack = (patches) => {
    let step = {};
    return patches.map((patch) => {
      step = { ...step };
      for (const [id, change] of Object.entries(patch)) step[id] = { ...step[id], ...change };
      return step;
    });
  };

  const apply = (element, before, after) => {
    for (const [name, value] of Object.entries({ ...before, ...after })) {
      if (before[name] === after[name]) continue;
      if (name === "") element.textContent = after[name] ?? "";
      else if ((after[name] ?? null) === null) element.removeAttribute(name);
      else element.setAttribute(name, value);
    }
  };

  class Player {
    constructor(figure) {
      const { still, patches } = JSON.parse(figure.querySelector("script").textContent);
      this.figure = figure;
      this.name = figure.dataset.trace;
      this.still = still - 1;
      this.at = this.still; // what the page was built with
      this.steps = unpack(patches);
      this.captions = [...figure.querySelectorAll(".trace-steps > li")];
      this.say = figure.querySelector(".trace-say");
      this.slider = figure.querySelector("input");
      this.buttons = [...figure.querySelectorAll("button")];
      for (const button of this.buttons) {
        button.addEventListener("click", () => this.go(this.at + Number(button.dataset.go)));
      }
      this.slider.addEventListener("input", () => this.go(Number(this.slider.value) - 1));
      figure.classList.add("plays");
      figure.querySelector(".trace-controls").hidden = false;
      this.say.hidden = false;
      this.go(0);
    }

    go(step) {
      const to = Math.max(0, Math.min(step, this.steps.length - 1));
      this.show(this.at, to);
      this.at = to;
      this.slider.value = to + 1;
      this.slider.setAttribute("aria-valuetext", `step ${to + 1} of ${this.steps.length}`);
      // Not `disabled`: a button that has the focus would lose it.
      this.buttons[0].setAttribute("aria-disabled", to === 0);
      this.buttons[1].setAttribute("aria-disabled", to === this.steps.length - 1);
      this.say.innerHTML =
        `<span class="trace-count">${to + 1} of ${this.steps.length}</span> ` +
        this.captions[to].innerHTML;
    }

    show(from, to) {
      const [before, after] = [this.steps[from], this.steps[to]];
      for (const id of Object.keys(after)) {
        if (before[id] === after[id]) continue;
        apply(document.getElementById(`${this.name}-${id}`), before[id], after[id]);
      }
    }
  }

  const players = [...document.querySelectorAll("figure[data-trace]")].map(
    (figure) => new Player(figure));

  // #07-ping-pong.4 is the fourth step.
  const follow = () => {
    const [, name, step] = /^#(.+)\.(\d+)$/.exec(location.hash) || [];
    const player = players.find((each) => each.name === name);
    if (!player) return;
    player.go(Number(step) - 1);
    player.figure.scrollIntoView();
  };
  addEventListener("hashchange", follow);
  follow();

  // On paper: the step that was chosen for it, above all captions.
  addEventListener("beforeprint", () => players.forEach((each) => each.show(each.at, each.still)));
  addEventListener("afterprint", () => players.forEach((each) => each.show(each.still, each.at)));
})();
