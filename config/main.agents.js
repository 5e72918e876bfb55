/**
 * The agents that run a build (docs/guides/team-of-agents.md). `model` and `modelReasoningEffort`: null leaves it to the settings and to
 * codex; what the settings say counts before what stands here.
 */
module.exports = [
  {
    name: 'agents-builder',
    displayName: 'Team builder',
    description: 'Reads the specification, plans the work as tasks, and writes the prompts that the team needs for it.',
    promptPath: 'prompts/agents/agents-builder.md',
    model: 'gpt-5-codex',
    modelReasoningEffort: 'high',
    enabled: true,
  },
  {
    name: 'master-mind',
    displayName: 'Master mind',
    description: 'Works through the plan: gives tasks to the team, checks what comes back, and says what is done.',
    promptPath: 'prompts/agents/master-mind.md',
    model: 'gpt-5-codex',
    modelReasoningEffort: 'high',
    enabled: true,
  },
  {
    name: 'project-summarizer',
    displayName: 'Summarizer',
    description: 'Says where the project stands, for the person and for whoever goes on. Changes nothing.',
    promptPath: 'prompts/agents/project-summarizer.md',
    model: 'gpt-5-codex',
    modelReasoningEffort: 'low',
    enabled: true,
  },
]
