import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { SessionEvent } from '../../src/core/events/events.ts'
import { askPersonTool } from '../../src/core/shapes/tools.ts'
import { emptyState } from '../../src/core/state/state.ts'
import { OWN_TEMPLATES } from '../../src/modes/registry.ts'
import { nothingSecret, redactorOf } from '../../src/secrets/redactor.ts'
import { SessionLog } from '../../src/session/session-log.ts'
import { answerAskPerson, answerRunAgent, HostTools } from '../../src/session/tools.ts'
import { playSession } from '../support/played-session.ts'
import { created, fold, SESSION } from '../support/session-events.ts'
import { VirtualClock } from '../support/virtual-clock.ts'

/** A session in its second round, and its questions. */
function session({ redactor = nothingSecret, before = [] as SessionEvent[] } = {}) {
  const events: SessionEvent[] = []
  const journal = { append: (event: SessionEvent) => void events.push(event), sync: async () => {}, ...disposable }
  const log = new SessionLog(emptyState(SESSION), {
    journal,
    views: [],
    templates: OWN_TEMPLATES,
    clock: new VirtualClock(0),
    redactor,
  })
  for (const event of [created(), ...before, started]) log.emit(event)
  const tools = new HostTools([answerAskPerson({ log, redact: redactor.text })])
  return {
    log,
    tools,
    ask: (args: unknown) => tools.answer({ tool: 'ask_person', arguments: args }, never),
    questions: () => events.filter(event => event.type === 'question-asked'),
  }
}

const never = new AbortController().signal
const disposable = { [Symbol.asyncDispose]: async () => {} }
const started: SessionEvent = {
  type: 'round-started',
  round: 2,
  agent: 'a',
  engine: 'codex',
  codex: '1',
  model: null,
  input: 'Go on.',
}
const database = { question: 'Which database?', options: ['SQLite', 'Postgres'], assumption: 'SQLite' }

test('what an agent asks is kept with its assumption, and it is told to go on', async () => {
  const { ask, questions } = session()
  const { text, success } = await ask(database)
  expect(success).toBe(true)
  expect(text).toMatch(/Nobody is there now.+Q1.+Continue with your assumption.+MAIN\.md/)
  await ask({ question: 'What name?', assumption: 'app' })
  expect(questions()).toMatchObject([
    { round: 2, question: 'Q1', text: 'Which database?', options: ['SQLite', 'Postgres'], assumption: 'SQLite' },
    { round: 2, question: 'Q2', text: 'What name?', options: [], assumption: 'app' },
  ])
})

test('the same question again, in another round or after a restart, is one question', async () => {
  const { ask, questions, log } = session({ redactor: redactorOf([{ name: 'TOKEN', value: 'hunter2hunter2' }]) })
  await ask({ ...database, question: 'May I use hunter2hunter2?' })
  await ask({ question: 'What name?', assumption: 'app' })
  expect(await ask({ ...database, question: ' may I use\n hunter2hunter2? ' })).toMatchObject({
    success: true,
    text: expect.stringContaining('kept already, as Q1'),
  })
  expect(questions()).toHaveLength(2)
  expect(JSON.stringify(questions())).not.toContain('hunter2')
  // What the journal holds is all that a resumed session knows.
  expect(
    questions().reduce((state, event) => fold(state, { v: 1, at: '', session: SESSION, ...event }), emptyState(SESSION))
      .asked,
  ).toEqual(log.state.asked)
})

test('a session keeps 50 questions, and says that it takes no more', async () => {
  const { ask, questions } = session()
  for (let n = 1; n <= 50; n++) expect((await ask({ question: `Number ${n}?`, assumption: 'x' })).success).toBe(true)
  const { text, success } = await ask({ question: 'One more?', assumption: 'x' })
  expect([success, questions().length]).toEqual([false, 50])
  expect(text).toMatch(/^50 questions are kept, and no more are taken\. Decide for yourself/)
})

test.each<[string, unknown, string]>([
  ['no object', 'What name?', 'Call it with an object of `question`, `options` and `assumption`.'],
  ['no assumption', { question: 'A?' }, '`assumption` is missing. Nothing was kept; call it again.'],
  ['an empty question', { question: ' \n', assumption: 'x' }, '`question` is wrong: use a text that is not empty.'],
  ['a long one', { question: 'x'.repeat(2001), assumption: 'x' }, '`question` is wrong: use at most 2000 characters.'],
  ['options of another kind', { ...database, options: [1] }, '`options.0` is wrong: use a text.'],
  ['options that are none', { ...database, options: 'yes' }, '`options` is wrong: use a list of texts.'],
  ['many options', { ...database, options: [...'abcdefghijk'] }, '`options` is wrong: use at most 10.'],
])('a question with %s is not kept, and the agent is told what to mend', async (_, args, problem) => {
  const { ask, questions } = session()
  const { text, success } = await ask(args)
  expect(success).toBe(false)
  expect(text.startsWith(problem), text).toBe(true)
  expect(questions()).toEqual([])
})

test('options that are no options, half characters and unknown fields do no harm', async () => {
  const { ask, questions } = session()
  expect((await ask({ question: 'A \ud83d?', options: null, assumption: 'x', more: 1 })).success).toBe(true)
  expect((await ask({ question: 'B?', options: ['yes', ' yes ', 'no'], assumption: 'x' })).success).toBe(true)
  expect(questions()).toMatchObject([{ text: 'A \ufffd?', options: [] }, { options: ['yes', 'no'] }])
})

test('the agent is told of the tool what its arguments are', () => {
  const { properties, required } = askPersonTool.inputSchema as { properties: object; required: string[] }
  expect(Object.keys(properties)).toEqual(['question', 'options', 'assumption'])
  expect(required).toEqual(['question', 'assumption'])
})

test('a tool that codemachine does not answer is refused in words that the model can read', async () => {
  const { tools, questions } = session()
  const answer = await tools.answer({ tool: 'run_shell', arguments: { question: 'A?', assumption: 'x' } }, never)
  expect(answer).toEqual({
    text: 'codemachine answers no tool named "run_shell". What it answers: ask_person. Continue without it.',
    success: false,
  })
  expect(questions()).toEqual([])
  const long = await tools.answer({ tool: 'x'.repeat(100_000), arguments: {} }, never)
  expect(long.text.length).toBeLessThan(400)
})

test('a template brings tools of its own, and cannot replace those of codemachine', async () => {
  const asked: object[] = []
  const waited: AbortSignal[] = []
  const offer = (name: string) => ({ name, description: 'Looks something up.', inputSchema: { type: 'object' } })
  const lookUp = (name: string) => ({
    offer: offer(name),
    read: (args: unknown) => (args instanceof Object ? args : { problem: 'Call it with an object.' }),
    answer: async (call: object, over: AbortSignal) => {
      asked.push(call)
      waited.push(over)
      return { text: 'found', success: true }
    },
  })
  const given: string[] = []
  const runAgent = answerRunAgent(async ({ agent }) => {
    given.push(agent)
    return { text: 'done', success: true }
  })
  const tools = new HostTools([runAgent, lookUp('look_up'), lookUp('run_agent')])
  expect(await tools.answer({ tool: 'look_up', arguments: { key: 1 } }, never)).toEqual({
    text: 'found',
    success: true,
  })
  expect(await tools.answer({ tool: 'look_up', arguments: 'key' }, never)).toEqual({
    text: 'Call it with an object.',
    success: false,
  })
  await tools.answer({ tool: 'run_agent', arguments: { agent: 'tester', task: 'T1: test it' } }, never)
  expect([asked, given]).toEqual([[{ key: 1 }], ['tester']])
  // It can stop when nobody waits any more.
  expect(waited[0]).toBe(never)
})

test.each([
  ['nothing keeps its agents from it', false, ['/work/.env', '/work/**/*.pem'], 1],
  ['codex keeps its agents from it', true, ['/work/.env'], 0],
  ['they may read everything', false, [], 0],
])(
  'a session says when it begins whether agents can read what they are not to: %s',
  async (_, hidesFiles, unreadable, said) => {
    const thread = { agent: 'a', developerInstructions: 'Do it.', model: null, effort: null, unreadable }
    await using folder = await mkdtempDisposable(join(tmpdir(), 'codemachine-unreadable-'))
    const { events } = await playSession([() => ({ class: 'worked', message: null })], {
      folder: folder.path,
      hidesFiles,
      template: {
        threads: [{ part: null, thread }],
        ahead: () => null,
        next: ({ roundsUsed }) =>
          roundsUsed === 0
            ? { kind: 'round', round: { thread, input: 'Go.' } }
            : { kind: 'end', outcome: { kind: 'interrupted', by: 'stop' } },
      },
    })
    const warnings = events.flatMap(event => (event.type === 'warning' ? event.message : []))
    expect(warnings).toHaveLength(said)
    const named = 'that should be hidden from them (/work/.env, and 1 more): only the sandbox workspace-write'
    for (const warning of warnings) expect(warning).toContain(named)
    expect(events.findIndex(({ type }) => type === 'warning')).toBeLessThan(
      events.findIndex(({ type }) => type === 'round-started'),
    )
  },
)
