// What the operator enters: the token, intents, and what-if questions.

// Returns the intent that the form describes, without its key.
export function intentOf(form) {
  const field = (name) => form.elements[name].value.trim();
  const list = (name) => field(name).split(/[\s,]+/).filter(Boolean);
  const constraints = { protected: form.elements.protected.checked };
  if (field("bandwidth")) constraints.bandwidth = field("bandwidth");
  if (field("delay")) constraints.delay = { most: field("delay"), percentile: 99 };
  return { kind: field("kind"), from: list("from"), to: list("to"), traffic: field("traffic"), constraints };
}

// Returns the case that what is chosen fails; null for a host.
export function failureOf(item) {
  if (item.kind === "link") return { case: "link-fails", at: item.link.from };
  if (item.kind === "switch") return { case: "switch-fails", dpid: item.switch.dpid };
  return null;
}

// Runs what a form does when it is sent, and shows what was wrong in `problem`.
export function onSend(form, problem, action) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    problem.textContent = "";
    try {
      await action();
    } catch (error) {
      problem.textContent = error.message;
    }
  });
}
