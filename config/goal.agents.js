/** The agent of the `goal` template. `model` and `modelReasoningEffort`: null leaves it to the settings and to codex. */
module.exports = [
  {
    name: 'goal-worker',
    displayName: 'Goal worker',
    description: 'Works on one goal, round after round, with MAIN.md and tasks.json as its memory.',
    promptPath: 'prompts/goal.md',
    model: null,
    modelReasoningEffort: null,
    enabled: true,
  },
]
