import type { Recorded, SessionEvent } from '../../src/session/events.ts'
import type { Item } from '../../src/session/items.ts'

const SESSION = '20261120_1'
const counts = (total: number) => ({ input: total, cachedInput: 0, output: 0, reasoning: 0, total })

/** One event of each type. A type that is missing does not compile. */
export const sampleEvents: { [T in SessionEvent['type']]: Extract<SessionEvent, { type: T }> } = {
  'session-created': {
    type: 'session-created',
    goal: 'build X',
    template: 'goal',
    directory: '/work',
    limits: { rounds: 20 },
    sandbox: 'workspace-write',
    network: false,
    overrides: [],
    model: null,
    effort: null,
    queued: null,
    codemachine: '0.1.0',
  },
  'session-resumed': { type: 'session-resumed', limits: { rounds: 30 }, codemachine: '0.1.0' },
  'round-started': {
    type: 'round-started',
    round: 1,
    agent: 'goal-worker',
    engine: 'codex',
    codex: '0.169.0',
    model: 'gpt-6',
    input: 'Go on.',
  },
  'turn-started': { type: 'turn-started', round: 1, thread: 't1', turn: 'u1' },
  'item-completed': {
    type: 'item-completed',
    round: 1,
    item: { kind: 'agent-message', id: 'm1', text: 'All is well.', phase: null },
  },
  'plan-updated': {
    type: 'plan-updated',
    round: 1,
    explanation: null,
    steps: [
      { step: 'a', status: 'completed' },
      { step: 'b', status: 'in-progress' },
      { step: 'c', status: 'pending' },
    ],
  },
  usage: { type: 'usage', round: 1, thread: 't1', total: counts(45_210), last: counts(900), contextWindow: 272_000 },
  limits: { type: 'limits', primary: { usedPercent: 40, windowMinutes: 300, resetsAt: null }, secondary: null },
  'model-rerouted': { type: 'model-rerouted', round: 1, from: 'gpt-6', to: 'gpt-5', reason: 'highRiskCyberActivity' },
  'request-answered': {
    type: 'request-answered',
    round: 1,
    method: 'item/commandExecution/requestApproval',
    subject: 'rm -rf build',
    answer: 'declined',
  },
  steered: { type: 'steered', round: null, text: 'Leave the API.\nPlease.', delivered: false },
  warning: { type: 'warning', round: null, message: 'The disk is nearly full.' },
  error: { type: 'error', round: 1, message: 'stream disconnected', details: 'reset by peer', willRetry: true },
  'round-ended': {
    type: 'round-ended',
    round: 1,
    outcome: { class: 'worked', message: null },
    counts: true,
    durationMs: 192_345,
    tokens: counts(45_210),
    treeBefore: 'aaaa',
    treeAfter: 'bbbb',
    changed: ['src/a.ts'],
    changedCount: 7,
  },
  waiting: {
    type: 'waiting',
    round: 2,
    cause: { class: 'network', message: 'connection refused' },
    until: new Date(2026, 10, 21, 5, 2).toISOString(),
  },
  'memory-broken': {
    type: 'memory-broken',
    problem: { file: 'tasks.json', problem: 'line 3 is not JSON.', setAside: 'tasks.json.broken-1', restored: true },
  },
  'repository-restored': {
    type: 'repository-restored',
    round: 1,
    paths: ['.git/config', '.git/hooks/pre-commit'],
    setAside: '/records/set-aside/1',
  },
  'done-nominated': { type: 'done-nominated', round: 1, by: ['MAIN.md', 'tasks.json'] },
  'done-refused': { type: 'done-refused', round: 1, reason: 'tasks-left', detail: 'tasks.json still has 1 task.' },
  'done-accepted': { type: 'done-accepted', round: 1, tree: '0123456789abcdef0123' },
  'session-ended': {
    type: 'session-ended',
    outcome: { kind: 'done', verified: false },
    exitCode: 0,
    rounds: 3,
    tokens: 1_234_567,
    durationMs: 7_500_000,
  },
}

/** One item of each kind. A kind that is missing does not compile. */
export const sampleItems: { [K in Item['kind']]: Extract<Item, { kind: K }> } = {
  'user-message': { kind: 'user-message', id: 'i', text: 'Go on.' },
  'agent-message': { kind: 'agent-message', id: 'i', text: 'First.\n\nSecond.', phase: 'final-answer' },
  reasoning: { kind: 'reasoning', id: 'i', text: '**Planning the change**\n\nI need to look first.' },
  command: {
    kind: 'command',
    id: 'i',
    command: "/bin/bash -lc 'npm test'",
    directory: '/work',
    status: 'failed',
    exitCode: 1,
    durationMs: 4_230,
    output: 'one\ntwo\n\nthree\r\nfour\n',
  },
  'file-change': {
    kind: 'file-change',
    id: 'i',
    status: 'completed',
    changes: [
      { path: '/work/src/a.ts', change: 'update', movedTo: null, diff: '--- a\n+++ b\n@@ -1 +1,2 @@\n-x\n+y\n+--z\n' },
      { path: '/work/b.ts', change: 'add', movedTo: null, diff: 'one\ntwo\n' },
      { path: '/else/c.ts', change: 'delete', movedTo: null, diff: '' },
      { path: '/work/d.ts', change: 'move', movedTo: '/work/e.ts', diff: '' },
    ],
  },
  plan: { kind: 'plan', id: 'i', text: '1. look\n2. leap' },
  'web-search': { kind: 'web-search', id: 'i', query: 'vitest 5 pools' },
  'mcp-tool-call': {
    kind: 'mcp-tool-call',
    id: 'i',
    server: 'docs',
    tool: 'find',
    status: 'failed',
    durationMs: 120,
    error: 'no such page',
  },
  'tool-call': { kind: 'tool-call', id: 'i', tool: 'ask', status: 'completed', durationMs: null },
  'sub-agent': {
    kind: 'sub-agent',
    id: 'i',
    action: 'spawnAgent',
    status: 'completed',
    prompt: 'Read the tests.\nAll of them.',
    threads: ['t2', 't3'],
  },
  image: { kind: 'image', id: 'i', path: '/work/shot.png' },
  compaction: { kind: 'compaction', id: 'i' },
  unknown: { kind: 'unknown', id: 'i', codexType: 'timeTravel' },
}

/** Events as they are journaled, a second apart, the first at 22:41:07 local time. */
export function recorded(events: readonly SessionEvent[], session: string = SESSION): Recorded[] {
  const start = new Date(2026, 10, 20, 22, 41, 7).getTime()
  return events.map((event, i) => ({ v: 1, at: new Date(start + i * 1000).toISOString(), session, ...event }))
}
