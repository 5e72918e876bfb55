/** The agents that are given tasks in a build (docs/guides/team-of-agents.md); the fields are those of `main.agents.js`. */
module.exports = [
  {
    name: 'uxui-designer',
    displayName: 'UX and UI designer',
    description: 'Screens, flows, wording, states and styles of what a person sees; accessible and of one piece.',
    promptPath: 'prompts/ux-ui-designer.md',
    model: 'gpt-5-codex',
    modelReasoningEffort: 'medium',
    enabled: true,
  },
  {
    name: 'frontend-dev',
    displayName: 'Frontend developer',
    description:
      'What runs in a browser or draws for a person: pages, components, styles, their state and their tests.',
    promptPath: 'prompts/frontend-developer.md',
    model: 'gpt-5-codex',
    modelReasoningEffort: 'medium',
    enabled: true,
  },
  {
    name: 'backend-dev',
    displayName: 'Backend developer',
    description: 'Servers, interfaces, data, command lines and libraries: what works behind the screen, and its tests.',
    promptPath: 'prompts/backend-developer.md',
    model: 'gpt-5-codex',
    modelReasoningEffort: 'high',
    enabled: true,
  },
  {
    name: 'solution-architect',
    displayName: 'Solution architect',
    description:
      'Which parts a solution has, what is bought or built, and how data flows between them; decides and writes it down.',
    promptPath: 'prompts/solution-architect.md',
    model: 'gpt-5-codex',
    modelReasoningEffort: 'high',
    enabled: true,
  },
  {
    name: 'software-architect',
    displayName: 'Software architect',
    description:
      'The inner structure of a code base: modules, interfaces, data shapes, build and test set-up; moves it where needed.',
    promptPath: 'prompts/software-architect.md',
    model: 'gpt-5-codex',
    modelReasoningEffort: 'high',
    enabled: true,
  },
  {
    name: 'technical-writer',
    displayName: 'Technical writer',
    description: 'README, guides and reference that say what is true, with examples that were run.',
    promptPath: 'prompts/technical-writer.md',
    model: 'gpt-5-codex',
    modelReasoningEffort: 'low',
    enabled: true,
  },
  {
    name: 'qa-engineer',
    displayName: 'QA engineer',
    description:
      'Tests what others have built against the acceptance criteria, writes the missing tests, reports what fails.',
    promptPath: 'prompts/qa-test-engineer.md',
    model: 'gpt-5-codex',
    modelReasoningEffort: 'medium',
    enabled: true,
  },
  {
    name: 'performance-engineer',
    displayName: 'Performance engineer',
    description:
      'Measures speed, memory and size, finds what they are lost to, and mends it with numbers before and after.',
    promptPath: 'prompts/performance-engineer.md',
    model: 'gpt-5-codex',
    modelReasoningEffort: 'high',
    enabled: true,
  },
]
