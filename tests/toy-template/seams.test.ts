import { mkdir, mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Recorded } from '../../src/core/events/events.ts'
import type { OwnStep } from '../../src/core/template.ts'
import { redactorOf } from '../../src/secrets/redactor.ts'
import { openOutputs } from '../../src/session/records/outputs.ts'
import { ofType, type PlayOptions } from '../support/played-session.ts'
import { promise } from '../support/promise.ts'
import { SESSION } from '../support/session-events.ts'
import { playToy, type ToyOptions, toyAfter } from './toy.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'codemachine-seams-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const play = (toy: ToyOptions, options: Partial<PlayOptions> = {}) => playToy(toy, { folder, ...options })

const home = () => join(folder, '.codemachine/projects', SESSION)
const kept = async (file: string) => await readFile(join(home(), file), 'utf8')

const enter = (state: string, why: string): OwnStep => ({ kind: 'enter', state, why })
const keep: OwnStep = { kind: 'keep', file: 'plan/v1.md', name: 'plan', text: '# The plan\n' }
const look: OwnStep = { kind: 'look', what: 'loom', keep: { file: 'context.md' } }
const looks: ToyOptions['looks'] = { loom: async () => ({ text: '# The loom\n', threads: 7 }) }
const claim: OwnStep = { kind: 'claim' }

test('a template goes over from state to state, and the session knows the one that it is in', async () => {
  const toy: ToyOptions = { steps: [enter('weaving', 'The loom is strung.'), enter('mending', 'A thread broke.')] }
  const { events } = await play({ ...toy, firstState: 'idle' })
  expect(ofType(events, 'state-entered')).toMatchObject([
    { step: 1, from: 'idle', state: 'weaving', why: 'The loom is strung.' },
    { step: 2, from: 'weaving', state: 'mending', why: 'A thread broke.' },
  ])
  expect(toyAfter(events, toy)).toMatchObject({ workState: 'mending', step: null, steps: 2 })
  const [first] = ofType((await play(toy)).events, 'state-entered')
  expect(first?.from).toBeNull()
})

describe('what is kept for people', () => {
  promise('C93')
  test('lies in the folder of the session, and as an output beside the journal, without its secrets', async () => {
    const toy: ToyOptions = {
      steps: [{ ...keep, text: 'The key is hunter2hunter2.\n' } as OwnStep, { kind: 'keep', file: 'b.txt', text: 'b' }],
    }
    const { events } = await play(toy, { redactor: redactorOf([{ name: 'KEY', value: 'hunter2hunter2' }]) })
    expect(await kept('plan/v1.md')).toBe('The key is [secret KEY].\n')
    const [first, second] = ofType(events, 'kept')
    expect(first).toMatchObject({ step: 1, file: 'plan/v1.md', bytes: 25, problem: null, output: { name: 'plan' } })
    expect(second).toMatchObject({ step: 2, file: 'b.txt', bytes: 1, problem: null })
    expect(second).not.toHaveProperty('output')
    const { outputs } = toyAfter(events, toy)
    expect(outputs.map(({ file }) => file)).toEqual(['1-plan.md'])
    expect(await openOutputs(folder).whole(outputs[0] as never)).toBe('The key is [secret KEY].\n')
  })

  test('is not kept where it is larger than a text of the records may be, and that is said', async () => {
    const { events } = await play({ steps: [{ ...keep, text: 'x'.repeat(1024 * 1024 + 1) } as OwnStep] })
    expect(ofType(events, 'kept')).toMatchObject([
      { bytes: null, problem: 'what was to be kept in plan/v1.md has more than 1048576 characters.' },
    ])
    await expect(kept('plan/v1.md')).rejects.toThrow('ENOENT')
  })

  test('an output is kept whole in a file, too', async () => {
    const toy: ToyOptions = {
      steps: [keep, ({ outputs }) => ({ kind: 'keep', file: 'again.md', output: outputs[0] as never })],
    }
    await play(toy)
    expect(await kept('again.md')).toBe('# The plan\n')
  })

  test.each([
    'MAIN.md',
    'main.MD',
    'plan/MAIN.md',
    'Tasks.json',
    'steps/fix/notes.md',
    'report.md',
    '../up.md',
    '/etc/motd',
    'a\\b',
    '',
    'a//b',
  ])('is no file outside of the folder, and none of codemachine itself: %j', async file => {
    const toy: ToyOptions = { steps: [{ kind: 'keep', file, text: 'x' }] }
    const { events } = await play(toy)
    const [event] = ofType(events, 'kept')
    expect(event).toMatchObject({ bytes: null, sha256: null, problem: expect.stringContaining(JSON.stringify(file)) })
    expect(await readdir(home()).catch(() => [])).toEqual([])
  })

  promise(
    'C93',
    'What is kept for people is written through no link, has no secrets, and is whole however often it is cut off',
  )
  test('is written through no link, and what was to be said goes on as an output', async () => {
    const elsewhere = join(folder, 'elsewhere')
    await mkdir(elsewhere)
    await mkdir(join(folder, '.codemachine/projects'), { recursive: true })
    await symlink(elsewhere, home())
    const toy: ToyOptions = { steps: [keep, look], looks }
    const { events } = await play(toy)
    expect(await readdir(elsewhere)).toEqual([])
    expect(ofType(events, 'kept')).toMatchObject([
      { bytes: null, problem: expect.stringContaining('is a link'), output: { name: 'plan' } },
    ])
    expect(ofType(events, 'looked')).toMatchObject([
      { result: { threads: 7 }, file: 'context.md', problem: expect.stringContaining('is a link') },
    ])
  })

  test('a link in the place of the file is replaced, and nothing is written where it leads', async () => {
    await mkdir(join(home(), 'plan'), { recursive: true })
    await symlink(join(folder, 'target'), join(home(), 'plan/v1.md'))
    const { events } = await play({ steps: [keep] })
    expect(ofType(events, 'kept')).toMatchObject([{ problem: null }])
    expect(await kept('plan/v1.md')).toBe('# The plan\n')
    expect(await readdir(folder)).not.toContain('target')
  })

  test('of a look it is the text that it found, and all else of it stands in its event', async () => {
    const toy: ToyOptions = { steps: [look], looks }
    const { events } = await play(toy)
    expect(await kept('context.md')).toBe('# The loom\n')
    const [looked] = ofType(events, 'looked')
    expect(looked).toMatchObject({ result: { threads: 7 }, file: 'context.md', output: { file: '1-loom.md' } })
    expect(looked).not.toHaveProperty('problem')
  })

  test.each([
    ['no text', async () => ({ threads: 7 }), /no text/],
    ['nothing', async () => null, /no text/],
    ['a text that is too long', async () => ({ text: 'x'.repeat(1024 * 1024 + 1) }), /more than 1048576 characters/],
    ['too much beside it', async () => ({ text: '', all: 'x'.repeat(65_536) }), /more than 65536 bytes beside/],
  ])('a look that finds %s is a bug of the template', async (_, loom, problem) => {
    await expect(play({ steps: [look], looks: { loom } })).rejects.toThrow(problem)
  })
})

test('a look is told the session as it is then', async () => {
  const toy: ToyOptions = {
    steps: [enter('weaving', ''), { kind: 'look', what: 'state' }],
    looks: { state: async (_, { workState }) => workState },
  }
  expect(ofType((await play(toy)).events, 'looked')).toMatchObject([{ result: 'weaving' }])
})

describe('gates that a template adds', () => {
  const gate = (run: string, name = run) => ({ name, run, timeoutMs: 1000 })
  const adds = (gates: ReturnType<typeof gate>[]): OwnStep => ({ kind: 'gates', gates, why: 'They prove it.' })

  test('are none of a template that does not say that it adds some', async () => {
    await expect(play({ steps: [adds([gate('make')])] })).rejects.toThrow(
      'the template "toy" adds gates, and says nothing of that (`addsGates`)',
    )
  })

  test.each([
    ['two by the same name', [gate('make', 'a'), gate('npm test', 'a')], 'two gates have the same name'],
    ['more than 50', Array.from({ length: 51 }, (_, n) => gate(`make ${n}`)), '51 gates are more than 50'],
    ['one without a command', [gate(' ', 'a')], 'the gate "a" has no command, or no time to run'],
  ])('%s are a bug of it', async (_, gates, problem) => {
    await expect(play({ addsGates: true, steps: [adds(gates)] })).rejects.toThrow(
      `the template "toy" adds gates that cannot be: ${problem}`,
    )
  })

  test('never hold a secret, which would stand in the journal', async () => {
    const redactor = redactorOf([{ name: 'KEY', value: 'hunter2hunter2' }])
    const played = play({ addsGates: true, steps: [adds([gate('curl -u hunter2hunter2 x')])] }, { redactor })
    await expect(played).rejects.toThrow('This gate contains a secret: curl -u [secret')
  })
})

test('why a state is entered is told in at most 1,000 characters', async () => {
  const [entered] = ofType((await play({ steps: [enter('weaving', 'x'.repeat(5_000))] })).events, 'state-entered')
  expect(entered?.why.length).toBeLessThanOrEqual(1_000)
})

promise('C93')
test('killed after any event, and gone on with, each step is done to its end, and the files are the same', async () => {
  const toy: ToyOptions = { steps: [enter('a', 'x'), look, keep, enter('b', 'y'), claim], looks }
  const whole = await play(toy)
  expect(whole.outcome).toEqual({ kind: 'done', verified: false })
  const last = toyAfter(whole.events, toy)
  for (let n = 1; n < whole.events.length; n++) {
    await rm(folder, { recursive: true })
    await mkdir(folder)
    const journal: Recorded[] = []
    const killed = play(toy, {
      append: event => {
        if (journal.length === n) throw new Error('killed')
        journal.push(event)
      },
    })
    await expect(killed).rejects.toThrow('killed')
    expect(toyAfter(journal, toy).workState).toBe(ofType(journal, 'state-entered').at(-1)?.state ?? null)
    const resumed = await play(toy, { journal })
    expect(resumed.outcome, `killed after ${journal.at(-1)?.type} (${n})`).toEqual(whole.outcome)
    expect([await kept('plan/v1.md'), await kept('context.md')]).toEqual(['# The plan\n', '# The loom\n'])
    const state = toyAfter([...journal, ...resumed.events], toy)
    expect([state.work, state.steps, state.workState]).toEqual([last.work, last.steps, 'b'])
  }
})

test('while it is paused, what works on nothing is done, and what works on something waits', async () => {
  const command: OwnStep = { kind: 'command', name: 'lint', run: 'x', timeoutMs: 1000, network: false }
  const toy: ToyOptions = { steps: [enter('a', ''), look, keep, command, claim], looks }
  const done: string[] = []
  const { outcome, events } = await play(toy, {
    onBegin: ({ asked }) => asked.pause(),
    onEvent: ({ type }, { asked, runner }) => {
      if (type !== 'held') return
      done.push(...runner.state.outputs.map(({ name }) => name), runner.state.workState ?? '')
      queueMicrotask(() => asked.unpause())
    },
  })
  expect(done).toEqual(['loom', 'plan', 'a'])
  expect(events.findIndex(({ type }) => type === 'held')).toBeLessThan(
    events.findIndex(({ type }) => type === 'command-ran'),
  )
  expect(outcome).toMatchObject({ kind: 'done' })
})
