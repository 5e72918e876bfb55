import { existsSync } from 'node:fs'
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate as nextTick } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { redactorOf } from '../../../src/secrets/redactor.ts'
import { ofType } from '../../support/played-session.ts'
import { promise } from '../../support/promise.ts'
import { ended, resumed, started, turn, usage, worked } from '../../support/session-events.ts'
import { forever, openScene, says, until } from './delegation-scene.ts'

/** Keeps what whoever follows an agent is told. */
const feedInto = (told: string[]) => ({
  waits: (agents: readonly string[]) => told.push(`for ${agents.join(', ')}`),
  started: (name: string) => told.push(name),
  text: (text: string) => told.push(text),
})

test('what an agent does is journaled as its own, its tokens are counted once, and its result is answered and kept', async () => {
  await using scene = await openScene({
    plays: {
      'frontend-dev': played => {
        const { run, thread } = played
        run.onRecord('{"line":1}')
        run.onLive({ type: 'output-delta', round: 1, item: 'c', text: 'ok' })
        run.onEvent({ type: 'machine-slept', round: 1, ms: 5 })
        run.onEvent({ ...(usage(1, thread, 100) as Extract<Parameters<typeof run.onEvent>[0], { type: 'usage' }>) })
        run.onEvent({ ...(usage(1, 'sub', 20) as Extract<Parameters<typeof run.onEvent>[0], { type: 'usage' }>) })
        return says('codex: The page is there.')(played)
      },
    },
  })
  const told: string[] = []
  const feed = feedInto(told)
  const answer = await scene.ask('frontend-dev', 'T1: Create the page.\nIn blue.', { feed })
  const instance = 'frontend-dev-20261118T110640000'
  expect(answer).toEqual({ text: 'The page is there.', success: true, status: 'completed', instance })
  expect(told).toEqual([instance])
  expect(scene.inputs).toEqual(['User Request:\nT1: Create the page.\nIn blue.'])
  expect(scene.events().map(({ type }) => type)).toEqual([
    'agent-started',
    'usage',
    'usage',
    'item-completed',
    'agent-ended',
  ])
  const [begun, , , item, ended] = scene.events()
  const request = 'T1: Create the page.\nIn blue.'
  expect(begun).toMatchObject({ round: 1, instance, agent: 'frontend-dev', tasks: ['T1'], request, parent: null })
  expect(begun).toMatchObject({ door: 'tool', model: null, effort: 'low', paths: null })
  expect(item).toMatchObject({ instance, item: { text: 'codex: The page is there.' } })
  expect(ended).toMatchObject({ instance, status: 'completed', result: 'The page is there.', tokens: { total: 120 } })
  expect(scene.live).toEqual([{ type: 'output-delta', round: 1, item: 'c', text: 'ok', instance }])
  expect(scene.remembered).toEqual([{ agent: 'frontend-dev', instance, request, result: 'The page is there.' }])
  expect(await readFile(join(scene.rounds, `001-${instance}.ndjson`), 'utf8')).toBe('{"line":1}\n')
  expect(scene.log.state).toMatchObject({ agents: [], running: { thread: 'main', lastWords: null } })
})

describe('where the cost is limited', () => {
  const limits = { rounds: 9, timeMs: null, tokens: null, cost: 5 }
  const prices = [{ model: 'small', in: 1, cached: 1, out: 1 }]
  const atWork = { ...started(1), part: 'orchestration' }
  const before = [{ ...resumed(), limits, prices }, atWork, turn(1, 'main')]

  promise(
    'M16',
    'What agents use is charged at the price of their own models; one whose model has none, or is not known, is ended at once where the cost is limited',
  )
  test('what an agent uses is charged at the price of its own model', async () => {
    await using scene = await openScene({
      before,
      threads: { 'frontend-dev': { model: 'small' } },
      plays: {
        'frontend-dev': ({ run, thread }) => {
          run.onEvent(usage(1, thread, 2_000_000))
          return worked
        },
      },
    })
    await scene.ask('frontend-dev', 'T1: Go.')
    expect(scene.log.state.cost).toEqual({ amount: 2, unpriced: 0 })
  })

  promise('M16')
  test.each([
    // As with `codex exec`, which does not say with which model it works.
    [null, 'name one with --model'],
    ['large', 'The model large has no price'],
  ])('an agent whose model is %s is ended at once, and never free', async (model, said) => {
    await using scene = await openScene({
      before,
      threads: { 'frontend-dev': { model } },
      plays: { 'frontend-dev': until(forever) },
    })
    const answer = await scene.ask('frontend-dev', 'T1: Go.')
    expect(answer).toMatchObject({ success: false, status: 'error', text: expect.stringContaining(said) })
  })
})

test('agents work side by side up to the limit, and one that waits has not been started', async () => {
  const ends = new Map(['a', 'b', 'c'].map(name => [name, Promise.withResolvers<void>()]))
  const plays = Object.fromEntries([...ends].map(([name, { promise }]) => [name, until(promise)]))
  await using scene = await openScene({ plays, atOnce: 2 })
  const asked = ['a', 'b', 'c'].map(name => scene.ask(name, 'T1: Go.', { paths: [name] }))
  await scene.journaled('agent-started', 2)
  const working = () => scene.log.state.agents.map(({ agent }) => agent).sort()
  expect(working()).toEqual(['a', 'b'])
  ends.get('a')?.resolve()
  await scene.journaled('agent-started', 3)
  expect(working()).toEqual(['b', 'c'])
  for (const { resolve } of ends.values()) resolve()
  expect((await Promise.all(asked)).map(({ success }) => success)).toEqual([true, true, true])
  // Of the same moment, and yet told apart.
  expect(new Set(ofType(scene.events(), 'agent-started').map(({ instance }) => instance)).size).toBe(3)
})

test('who asks is told for whom the agent waits, until it begins', async () => {
  const turn = Promise.withResolvers<void>()
  await using scene = await openScene({
    plays: {
      first: async () => {
        await turn.promise
        return worked
      },
    },
  })
  const first = scene.ask('first', 'T1: Go.')
  await scene.journaled('agent-started')
  const told: string[] = []
  const second = scene.ask('second', 'T2: Go.', { feed: feedInto(told) })
  await expect.poll(() => told, { timeout: 30_000 }).toEqual(['for first'])
  turn.resolve()
  await first
  const { instance } = await second
  expect(told).toEqual(['for first', instance])
})

test('an agent that names folders is bound to them, and they are there when it starts', async () => {
  let there: boolean[] = []
  await using scene = await openScene({
    plays: {
      a: () => {
        there = ['src/web', 'docs', '.codemachine/kb'].map(each => existsSync(join(scene.directory, each)))
        return worked
      },
    },
  })
  await mkdir(join(scene.directory, 'src'))
  await scene.ask('a', 'T1: Go.', { paths: ['./src/web/', 'docs', 'docs/deep', 'src/web'] })
  expect(there).toEqual([true, true, true])
  const [{ writable } = {}] = scene.prepared
  expect(writable).toEqual(['src/web', 'docs', '.codemachine/kb', '.codemachine/inbox'])
  expect(scene.events()[0]).toMatchObject({ paths: ['src/web', 'docs'] })
  await scene.ask('a', 'T2: Go.', { paths: ['.'] })
  expect(scene.prepared[1]).not.toHaveProperty('writable')
})

test('folders that an agent is given are the person’s own by their umask, and those that stay empty do not stay', async () => {
  const modes: Record<string, number> = {}
  await using scene = await openScene({
    plays: {
      writes: async () => {
        for (const each of ['src', 'src/web', '.codemachine/kb']) {
          modes[each] = (await stat(join(scene.directory, each))).mode & 0o777
        }
        await writeFile(join(scene.directory, 'src/web/index.html'), '')
        return worked
      },
    },
  })
  const there = (path: string) => existsSync(join(scene.directory, path))
  await scene.ask('idle', 'T1: Go.', { paths: ['src/api/v1', 'docs'] })
  expect([there('src'), there('docs')]).toEqual([false, false])
  await scene.ask('writes', 'T1: Go.', { paths: ['src/web', 'tests'] })
  const own = 0o777 & ~process.umask()
  expect(modes).toEqual({ src: own, 'src/web': own, '.codemachine/kb': 0o700 })
  expect([there('src/web/index.html'), there('tests')]).toEqual([true, false])
})

test('an empty folder stays where another agent still works in it', async () => {
  const turn = Promise.withResolvers<void>()
  await using scene = await openScene({
    plays: {
      parent: async () => {
        await turn.promise
        return worked
      },
    },
  })
  const there = (path: string) => existsSync(join(scene.directory, path))
  const parent = scene.ask('parent', 'T1: Go.', { paths: ['src/web'] })
  await scene.journaled('agent-started')
  await scene.ask('child', 'T1: Go.', { paths: ['src/web'], thread: 'thread-1' })
  await scene.ask('beside', 'T1: Go.', { paths: ['src/api'] })
  expect([there('src/web'), there('src/api')]).toEqual([true, false])
  turn.resolve()
  await parent
  expect(there('src')).toBe(false)
})

describe('an agent that does not come to its end says why, and what it said last', () => {
  test.each([
    [
      'crashed',
      'codex ended with exit code 101.',
      'a did not come to its end: its codex died. codex ended with exit code 101.',
    ],
    ['window', 'Try again at 8 PM.', "a did not come to its end: the account's usage is used up. Try again at 8 PM."],
    ['config', null, 'a did not come to its end.'],
  ] as const)('%s', async (end, message, expected) => {
    await using scene = await openScene({
      plays: {
        a: async played => {
          await says('I am at it.')(played)
          return { class: end, message }
        },
      },
    })
    const text = `${expected}\n\nThis is what it said last:\n\nI am at it.`
    expect(await scene.ask('a', 'T1: Go.')).toMatchObject({ success: false, status: 'error', text })
    expect(scene.events().at(-1)).toMatchObject({ type: 'agent-ended', status: 'error', result: text })
    expect(scene.remembered).toEqual([])
  })
})

test('an agent whose connection broke off goes on where it was, once', async () => {
  const broken = { class: 'network', message: 'gone' } as const
  await using scene = await openScene({ plays: { a: () => broken }, carryOn: says('Done after all.') })
  expect(await scene.ask('a', 'T1: Go.')).toMatchObject({ success: true, text: 'Done after all.' })
  await using lost = await openScene({ plays: { a: () => broken }, carryOn: () => broken })
  expect(await lost.ask('a', 'T1: Go.')).toMatchObject({ status: 'error', text: 'a did not come to its end. gone' })
})

test('when a round is broken off its agents are terminated, those that wait are never started, and nobody else is', async () => {
  await using scene = await openScene({ plays: { a: until(forever) } })
  const asked = [scene.ask('a', 'T1: Go.'), scene.ask('b', 'T2: Go.')]
  await scene.journaled('agent-started')
  await scene.delegation.end()
  const [first, second] = await Promise.all(asked)
  expect(first).toMatchObject({ status: 'terminated', text: 'a was ended before its work was done.' })
  expect(second).toMatchObject({ status: 'refused' })
  expect(scene.events().map(({ type }) => type)).toEqual(['agent-started', 'agent-ended'])
  expect(scene.settles()).toBe(1)
  expect(await scene.ask('b', 'T2: Go.')).toMatchObject({ status: 'refused' })
})

test('an agent is terminated when nobody waits for its answer any more', async () => {
  await using scene = await openScene({ plays: { a: until(forever) } })
  const over = new AbortController()
  const asked = scene.ask('a', 'T1: Go.', {}, over.signal)
  await scene.journaled('agent-started')
  over.abort()
  expect(await asked).toMatchObject({ status: 'terminated' })
})

test('a person reaches each agent that is at work by itself, and none that has ended', async () => {
  const told: string[] = []
  const hears = (name: string) => ({
    [name]: async ({ steered }: { steered: Promise<string> }) => {
      told.push(`${name}: ${await steered}`)
      return worked
    },
  })
  await using scene = await openScene({ plays: { ...hears('a'), ...hears('b'), c: until(forever) } })
  const asked = ['a', 'b', 'c'].map(agent => scene.ask(agent, `${agent}: Go.`, { paths: [agent] }))
  await scene.journaled('agent-started', 3)
  // Which of them begins first is left to chance.
  const [a, b, c] = scene.delegation.agents.atWork.toSorted((one, other) => (one.agent < other.agent ? -1 : 1))
  expect([a?.agent, b?.agent, c?.agent]).toEqual(['a', 'b', 'c'])
  expect(await b?.steer('use tabs')).toBe(true)
  await asked[1]
  expect(told).toEqual(['b: use tabs'])
  expect(await b?.steer('once more')).toBe(false)
  expect(scene.delegation.agents.atWork.map(({ agent }) => agent).toSorted()).toEqual(['a', 'c'])
  expect(scene.delegation.agents.ended).toEqual([b?.instance])
  c?.stop()
  expect(await asked[2]).toMatchObject({
    status: 'terminated',
    success: false,
    text: expect.stringMatching(/^c was stopped by a person before its work was done; only this agent was\./),
  })
  expect(await a?.steer('go on')).toBe(true)
  expect(await asked[0]).toMatchObject({ status: 'completed' })
})

test('when the round comes to a safe stop its agents are asked to, and ended when half of its time is over', async () => {
  let told = ''
  await using scene = await openScene({
    plays: {
      obeys: async ({ steered }) => {
        told = await steered
        return { class: 'worked', message: null }
      },
      deaf: until(forever),
    },
  })
  const asked = [scene.ask('obeys', 'T1: Go.', { paths: ['a'] }), scene.ask('deaf', 'T2: Go.', { paths: ['b'] })]
  await scene.journaled('agent-started', 2)
  const before = scene.clock.now()
  scene.delegation.windDown()
  expect((await Promise.all(asked)).map(({ status }) => status)).toEqual(['completed', 'terminated'])
  expect(told).toMatch(/^Your time for this task is over\./)
  expect(scene.clock.now() - before).toBe(30_000)
  expect(await scene.ask('obeys', 'T1: Go.')).toMatchObject({ status: 'refused' })
})

test('a round that has ended waits for the agents that work, and takes no request before the next one', async () => {
  const end = Promise.withResolvers<void>()
  await using scene = await openScene({ plays: { a: until(end.promise) } })
  const asked = scene.ask('a', 'T1: Go.', { door: 'command-line', thread: null, isOutside: true })
  await scene.journaled('agent-started')
  let isSettled = false
  const settled = scene.delegation.settled().then(() => {
    isSettled = true
  })
  expect(await scene.ask('b', 'T2: Go.')).toMatchObject({ status: 'refused' })
  await nextTick()
  expect(isSettled).toBe(false)
  end.resolve()
  await settled
  expect(await asked).toMatchObject({ status: 'completed' })
  expect(await scene.ask('b', 'T2: Go.')).toMatchObject({ status: 'refused' })
  for (const event of [ended(1, worked), { ...started(2), part: 'orchestration' as const }]) scene.log.emit(event)
  expect(await scene.ask('b', 'T2: Go.')).toMatchObject({ status: 'completed' })
})

test('an agent that an agent asks for works under it, in its folders, and ends with it', async () => {
  const stop = new AbortController()
  await using scene = await openScene({ plays: { 'frontend-dev': until(forever), 'uxui-designer': until(forever) } })
  const parent = scene.ask('frontend-dev', 'T1: Go.', { paths: ['src/web'] }, stop.signal)
  await scene.journaled('agent-started')
  const from = { thread: 'thread-1', door: 'command-line' } as const
  expect(await scene.ask('qa-engineer', 'T1: Test.', { ...from, paths: ['tests'] })).toMatchObject({
    text: '"tests" is out of reach: frontend-dev itself may write only in src/web.',
  })
  expect(await scene.ask('frontend-dev', 'T1: Go.', from)).toMatchObject({ status: 'refused' })
  const child = scene.ask('uxui-designer', 'T1: Draw.', from)
  await scene.journaled('agent-started', 2)
  const [first, second] = ofType(scene.events(), 'agent-started')
  expect(second).toMatchObject({ parent: first?.instance, paths: ['src/web'] })
  const deeper = { ...from, thread: 'thread-2' }
  expect((await scene.ask('frontend-dev', 'T1: Go.', deeper)).text).toContain('waits for this itself')
  expect((await scene.ask('technical-writer', 'T1: Go.', deeper)).text).toContain('at most 2 deep')
  stop.abort()
  expect(await child).toMatchObject({ status: 'terminated' })
  expect(await parent).toMatchObject({ status: 'terminated' })
  expect(ofType(scene.events(), 'agent-ended').map(({ instance }) => instance)).toEqual([
    second?.instance,
    first?.instance,
  ])
})

test('no secret that an agent says is answered, kept or journaled', async () => {
  await using scene = await openScene({
    redactor: redactorOf([{ name: 'TOKEN', value: 'hunter2hunter2' }]),
    plays: {
      a: played => {
        played.run.onRecord('{"text":"hunter2hunter2"}')
        return says('It is hunter2hunter2.')(played)
      },
    },
  })
  const { text, instance } = await scene.ask('a', 'T1: Use hunter2hunter2.')
  expect(text).toBe('It is [secret TOKEN].')
  const record = await readFile(join(scene.rounds, `001-${instance}.ndjson`), 'utf8')
  expect(JSON.stringify([scene.events(), scene.remembered, record])).not.toContain('hunter2')
})

test('who follows an agent reads what it says as it comes, without a secret that comes in pieces', async () => {
  await using scene = await openScene({
    redactor: redactorOf([{ name: 'TOKEN', value: 'hunter2hunter2' }]),
    plays: {
      a: played => {
        const { run } = played
        for (const text of ['I use hunt', 'er2hunter2, and hun', 't for bugs.', 'hunter2hunter', '2hunter2hun']) {
          run.onLive({ type: 'text-delta', round: 1, item: 'm', source: 'agent-message', text })
        }
        run.onLive({ type: 'text-delta', round: 1, item: 'r', source: 'reasoning', text: 'Hm.' })
        return says('I use it.')(played)
      },
    },
  })
  const told: string[] = []
  const feed = feedInto(told)
  const { instance } = await scene.ask('a', 'T1: Go.', { feed })
  expect(told.join('')).toBe(`${instance}I use [secret TOKEN], and hunt for bugs.[secret TOKEN]hunter2hun\n`)
})

test('what cannot be kept in its memory is a warning, and its answer comes all the same', async () => {
  await using scene = await openScene({ plays: { a: says('Done.') }, forgets: 'Its memory is a link.' })
  expect(await scene.ask('a', 'T1: Go.')).toMatchObject({ text: 'Done.' })
  expect(scene.events().at(-1)).toMatchObject({ type: 'warning', message: 'Its memory is a link.' })
})

test('what cannot be journaled ends the agent, and whoever runs the session learns of it', async () => {
  await using scene = await openScene({
    append: ({ type }) => {
      if (type === 'item-completed') throw new Error('The disk is full.')
    },
    plays: {
      a: async played => {
        await says('Done.')(played)
        return await until(forever)(played)
      },
    },
  })
  await expect(scene.ask('a', 'T1: Go.')).rejects.toThrow('The disk is full.')
  expect(scene.events().at(-1)).toMatchObject({ type: 'agent-ended', status: 'terminated' })
})

test('a question of an agent that cannot be journaled ends the agent, too', async () => {
  const question = { tool: 'ask_person', arguments: { question: 'Red or blue?', assumption: 'Red.' } }
  await using scene = await openScene({
    append: ({ type }) => {
      if (type === 'question-asked') throw new Error('The disk is full.')
    },
    plays: {
      a: async played => {
        await played.run.onToolCall?.(question, new AbortController().signal).catch(() => {})
        return worked
      },
    },
  })
  await expect(scene.ask('a', 'T1: Go.')).rejects.toThrow('The disk is full.')
})
