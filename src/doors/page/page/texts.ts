/** What the page says by itself; what it says of sessions are the words of codemachine. */
export const TEXTS = {
  roundsOf: (used: number, most: number) => `${used} of ${most} rounds`,
  amountOf: (used: string, most: string) => `${used} of ${most}`,
  now: 'Now',
  new: 'New',
  settings: 'Settings',
  reading: 'Loading …',
  isCut: 'Disconnected.',
  connection: { connecting: 'connecting', open: 'connected', cut: 'disconnected', 'no-key': 'not paired' },
  oldPage: 'This page is older than its server. Reload the page.',

  enter: {
    title: 'Pair this device',
    byLink: 'Open the link that codemachine web prints on your machine. It works once, within an hour.',
    byCode:
      'Or get a code: on a paired device under Settings, “Pair a device”; in a terminal with codemachine web pair. Type it here.',
    code: 'Eight-digit code',
    send: 'Pair',
    asked: 'Now confirm it on the other device.',
  },

  queued: (count: number) => (count === 1 ? '1 prompt waits' : `${count} prompts wait`),

  answer: 'Answer',
  ownWords: 'Other …',
  undo: (seconds: number) => `Undo (${seconds})`,
  notSent: (what: string, problem: string) => `Not sent: ${what}. ${problem}`,
  asks: (count: number) => (count === 1 ? '1 question: answer' : `${count} questions: answer`),
  fine: 'Fine',
  otherwise: 'Do it differently',
  instead: (question: string) => `What should the agent do instead? (${question})`,
  beginsSession: (queued: number) =>
    queued === 0
      ? 'This begins a new session.'
      : `This begins a new session, after the queue (${queued === 1 ? '1 prompt' : `${queued} prompts`}).`,
  beginSession: 'Begin a session',
  check: (count: number) => (count === 1 ? '1 assumption: check' : `${count} assumptions: check`),

  tabs: {
    live: 'Live',
    work: 'Work',
    changes: 'Changes',
    proof: 'Proof',
    report: 'Report',
  },
  rounds: 'Rounds',
  tasks: 'Tasks',
  queue: 'Queue',
  changed: 'Changed files',
  steps: { pending: 'to do', 'in-progress': 'now', completed: 'done' },
  theRound: 'the agent of the round',
  actions: 'Steer the session',
  more: 'More',
  resume: 'Resume',
  limits: 'Limits',
  wrongLimit: 'Not a valid limit. Examples: 20 (rounds), 8h, 5M (tokens), 10 (cost).',

  roundsCount: (count: number) => (count === 1 ? '1 round' : `${count} rounds`),
  files: (count: number) => (count === 1 ? '1 file' : `${count} files`),
  marks: { 'to-do': 'to do', now: 'now', claimed: 'claimed', done: 'done', parked: 'parked', failed: 'failed' },

  prompt: 'Prompt',
  edit: 'Edit',
  remove: 'Remove',
  up: 'Earlier',
  down: 'Later',
  template: 'Template',

  changesCount: (count: number, added: number, removed: number) =>
    `${count === 1 ? '1 file' : `${count} files`}, ${added} lines added, ${removed} removed`,

  reportOpen: 'Open in a new tab',
  progressOpen: 'Open the progress so far',

  goal: 'Goal',
  started: 'Started.',
  slow: 'The session has not started yet. The page keeps trying.',

  themes: { system: 'System', light: 'Light', dark: 'Dark' },
  devices: 'Devices',
  right: { look: 'view only', steer: 'full control' },
  end: 'Remove',
  pair: 'Pair a device',
  pairAsks: (name: string) => `“${name}” typed the code. Pair it?`,
  pairEnd: { 'let-in': 'Paired.', refused: 'Not paired.', 'too-late': 'Nobody typed the code in time.' },
  notifications: 'Notifications',
  pushDenied: 'The browser blocks notifications. Allow them in its settings for this page.',
  version: (version: string) => `codemachine ${version}`,
} as const

/** What a notification says, by its kind; nothing of the project is in it. */
export const NEWS: Readonly<Record<string, string>> = {
  question: 'A session has a question.',
  decision: 'A session asks you to decide.',
  'needs-person': 'A session needs you.',
  ended: 'A session has ended.',
}
