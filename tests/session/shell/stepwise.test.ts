import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { STEP_ANSWER } from '../../../src/core/shapes/shell-tools.ts'
import type { Template } from '../../../src/core/template.ts'
import { moveAfter, NO_STEPS, notesAfter, type StepTally, withCommand } from '../../../src/session/shell/stepwise.ts'
import { ofType, type PlayOptions, playSession, saying } from '../../support/played-session.ts'
import { promise } from '../../support/promise.ts'
import { type ScriptedShell, scriptedShell } from '../../support/scripted-shell.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'codemachine-stepwise-'))
})
afterAll(() => rm(folder, { recursive: true }))

const step = (command: string, more: object = {}) => JSON.stringify({ command, done: false, thoughts: 't', ...more })
const DONE = step('', { done: true })
const END = { kind: 'needs-person', reason: 'That was it.', hint: null } as const
const thread = { agent: 'worker', developerInstructions: 'Do it.', model: null, effort: null, noShell: true } as const

/** One round without tools. */
const TEMPLATE: Template = {
  threads: [],
  ahead: () => null,
  next: ({ last }) =>
    last !== null
      ? { kind: 'end', outcome: END }
      : {
          kind: 'round',
          round: {
            thread,
            input: 'Build it.',
            answer: { name: 'step-1', ...STEP_ANSWER },
            stepwise: { mostCommands: 60 },
          },
        },
}

/** A round whose agent says this, message after message, and the last one again and again; with what it was told after each. */
async function play(messages: readonly string[], shell: ScriptedShell, options: Partial<PlayOptions> = {}) {
  const told: string[] = []
  let turn = 0
  const next = () => saying(messages[Math.min(turn++, messages.length - 1)] ?? '')
  const ran = await playSession([played => next()(played)], {
    folder,
    template: TEMPLATE,
    shell,
    carryOn: played => next()(played),
    onCarryOn: input => void told.push(input),
    ...options,
  })
  return {
    ...ran,
    told,
    turns: turn,
    of: <T extends Parameters<typeof ofType>[1]>(type: T) => ofType(ran.events, type),
  }
}

promise(
  'T7',
  'An agent without tools has its commands run one after the other in one thread, 60 at most, and is told when it does not get on',
)
test('an agent without tools has its commands run one after the other, in one thread, until it says that it is done', async () => {
  const shell = scriptedShell({ run: ({ run }) => ({ stdout: `ran ${run}\n`, exitCode: run === 'make' ? 2 : 0 }) })
  const { told, of, outcome, prepared } = await play([step('ls'), step('make'), DONE], shell)
  expect(outcome).toEqual(END)
  expect(told).toEqual([
    'COMMAND: ls\nRETURN CODE: 0\nSTDOUT:\nran ls\n\nSTDERR:\n',
    'COMMAND: make\nRETURN CODE: 2\nSTDOUT:\nran make\n\nSTDERR:\n',
  ])
  expect(of('shell-ran')).toMatchObject([
    { round: 1, command: 'ls', exitCode: 0 },
    { round: 1, command: 'make', status: 'failed' },
  ])
  expect(of('answer-given')).toMatchObject([{ name: 'step-1', value: { command: '', done: true } }])
  expect(of('round-ended')).toMatchObject([{ outcome: { class: 'worked' } }])
  expect(prepared).toBe(1)
})

promise('T7')
test('a command that comes to the same three times, and one beside "done", are told', async () => {
  const { told } = await play([step('ls'), step('ls'), step('ls', { done: true }), DONE], scriptedShell())
  expect(told.map(text => text.split('\n').filter(line => line.startsWith('NOTE')))).toEqual([
    [],
    [],
    [
      expect.stringMatching(/^NOTE: This command had the same result 3 times\. Try another approach/),
      expect.stringMatching(/^NOTE: Your answer says that the work is done, but also has a command/),
    ],
  ])
})

test('a step has 60 commands, and its agent is told when they are over', async () => {
  const commands = Array.from({ length: 80 }, (_, n) => step(`echo ${n}`))
  const { told, of } = await play(commands, scriptedShell())
  expect(of('shell-ran')).toHaveLength(60)
  expect(told.filter(text => text.includes('No more commands are run.'))).toEqual([told[59]])
  expect(of('answer-given')).toMatchObject([{ value: { command: 'echo 60', done: false } }])
})

promise('T7')
test('three messages in a row that do not fit end the round, and each but the last is told what is wrong with it', async () => {
  const { told, of, turns } = await play(['Sure!', `${step('ls')} ${step('pwd')}`, '{"command":7}'], scriptedShell())
  expect(turns).toBe(3)
  expect(told).toHaveLength(2)
  for (const text of told)
    expect(text).toMatch(/could not use the last one.+End with one JSON object in the requested format/s)
  expect(of('shell-ran')).toEqual([])
  expect(of('answer-refused')).toMatchObject([{ name: 'step-1' }])
})

test('a message that fits begins the count of those that do not anew', async () => {
  const bad = ['No.', '[]']
  const { of } = await play([...bad, step('ls'), ...bad, DONE], scriptedShell())
  expect(of('answer-given')).toHaveLength(1)
})

test('no command and not done is told, and ends the round the third time', async () => {
  const { told, of } = await play([step('')], scriptedShell())
  expect(told).toEqual([
    expect.stringMatching(/^Your answer has no command/),
    expect.stringMatching(/^Your answer has no command/),
  ])
  expect(of('answer-given')).toMatchObject([{ value: { done: false } }])
})

const ask = (more: object = {}) =>
  step('', { ask_human: { question: 'The key of the shop.', key_name: 'SHOP_KEY', storage: 'env', ...more } })

test('a secret that is asked for ends the round; one that is there is told, and used by its name', async () => {
  const { of, told } = await play([ask()], scriptedShell())
  expect(of('secret-asked')).toMatchObject([
    { round: 1, key: 'SHOP_KEY', question: 'The key of the shop.', reason: null },
  ])
  expect([told, of('round-ended').length]).toEqual([[], 1])

  const there = scriptedShell({ secrets: { SHOP_KEY: 'a-long-secret' } })
  const second = await play([ask(), step('curl', { secrets: ['SHOP_KEY'] }), DONE], there)
  expect(second.told[0]).toMatch(/^SHOP_KEY is there\./)
  expect(there.ran).toMatchObject([{ run: 'curl', env: { SHOP_KEY: 'a-long-secret' } }])
  expect(second.of('secret-asked')).toEqual([])
})

test('a name that no secret may have is told, and never asked for', async () => {
  const { told, of } = await play([ask({ key_name: 'LD_PRELOAD' })], scriptedShell())
  expect(told).toEqual([expect.stringMatching(/^LD_PRELOAD cannot be/), expect.stringMatching(/^LD_PRELOAD cannot be/)])
  expect(of('secret-asked')).toEqual([])
})

test('a thread that goes between two turns is a crash, and no end of the work', async () => {
  const { of } = await play([step('ls'), DONE], scriptedShell(), { carryOn: undefined as never })
  expect(of('round-ended')).toMatchObject([{ outcome: { class: 'crashed' } }])
})

test('a person who interrupts breaks the command off', async () => {
  const broken = Promise.withResolvers<void>()
  const shell = scriptedShell({
    run: async ({ signal }) => {
      const over = Promise.withResolvers<void>()
      signal.addEventListener('abort', () => over.resolve())
      broken.resolve()
      await over.promise
      return { kind: 'broken-off' }
    },
  })
  const said: string[] = []
  const { of } = await play([step('sleep 99999')], shell, {
    onBegin: ({ runner, asked }) => {
      void broken.promise.then(() => {
        said.push('interrupted')
        asked.endNow('stop')
        runner.interrupt()
      })
    },
  })
  expect(said).toEqual(['interrupted'])
  expect(of('shell-ran')).toMatchObject([{ status: 'broken-off', exitCode: null }])
  expect(of('round-ended')).toMatchObject([{ outcome: { class: 'interrupted' } }])
})

test('a round whose time is over gives its command no more than the grace', async () => {
  const shell = scriptedShell({
    run: async ({ signal }) => {
      const over = Promise.withResolvers<void>()
      signal.addEventListener('abort', () => over.resolve())
      await over.promise
      return { kind: 'broken-off' }
    },
  })
  const { of } = await play([step('sleep 99999')], shell, {
    template: timed(600_000),
  })
  expect(of('winding-down')).toMatchObject([{ limit: 'round' }])
  expect(of('round-ended')).toMatchObject([
    { outcome: { class: 'interrupted', message: 'Its time of 10 minutes is over.' } },
  ])
})

function timed(timeoutMs: number): Template {
  return {
    ...TEMPLATE,
    next: (session, memory) => {
      const wanted = TEMPLATE.next(session, memory)
      return wanted.kind === 'round' ? { ...wanted, round: { ...wanted.round, timeoutMs } } : wanted
    },
  }
}

test('what is done about a message depends on what came before it', () => {
  const full: StepTally = { ...NO_STEPS, commands: 3 }
  expect(moveAfter(full, step('ls'), 3)).toEqual({ kind: 'over' })
  expect(moveAfter(full, step('ls'), 4)).toMatchObject({ kind: 'run' })
  expect(moveAfter({ ...NO_STEPS, misfits: 2 }, null, 4)).toEqual({ kind: 'over' })
  expect(moveAfter(NO_STEPS, null, 4)).toMatchObject({ kind: 'tell' })
  expect(moveAfter(NO_STEPS, `Here:\n\`\`\`json\n${step('ls')}\n\`\`\``, 4)).toMatchObject({
    answer: { command: 'ls' },
  })
  expect(withCommand({ ...NO_STEPS, misfits: 2 }, null)).toEqual({ ...NO_STEPS, commands: 1 })
  const answer = { command: 'ls', secrets: [], done: false, thoughts: '', ask: null }
  expect(notesAfter({ ...NO_STEPS, commands: 1 }, null, answer, 4)).toEqual([])
})
