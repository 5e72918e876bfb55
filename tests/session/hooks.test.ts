import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Hook, HookMoment } from '../../src/core/shapes/hook.ts'
import type { HookMeans } from '../../src/session/options.ts'
import { CLAIMED, ofType, type PlayOptions, playSession, UNCLAIMED } from '../support/played-session.ts'
import { promise } from '../support/promise.ts'
import { worked } from '../support/session-events.ts'

let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'codemachine-test-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const hook = (on: HookMoment, more: Partial<Hook> = {}): Hook => ({
  on,
  of: 'person',
  run: on,
  timeoutMs: 1000,
  refuses: false,
  ...more,
})

type End = Awaited<ReturnType<HookMeans['run']>>
const says = (output: string, exitCode: number): End => ({ kind: 'exited', exitCode, output, durationMs: 5 })

/** Hooks that end as `how` says, by how often any has run; passed where it says nothing. */
function hooked(hooks: readonly Hook[], how: (hook: Hook, runs: number) => End | undefined = () => undefined) {
  const ran: string[] = []
  const means: HookMeans = {
    hooks,
    run: async (each, { variables, timeoutMs }) => {
      const { CODEMACHINE_HOOK, CODEMACHINE_ROUND, CODEMACHINE_OUTCOME = '' } = variables
      ran.push(`${CODEMACHINE_HOOK} ${CODEMACHINE_ROUND} ${CODEMACHINE_OUTCOME}`.trim())
      expect(timeoutMs).toBeLessThanOrEqual(each.timeoutMs)
      return how(each, ran.length) ?? says('', 0)
    },
  }
  return { means, ran }
}

const claiming = (options: Partial<PlayOptions>) =>
  playSession([() => worked, () => worked, () => worked], {
    limits: { rounds: 9 },
    memory: () => CLAIMED,
    folder,
    ...options,
  })

promise(
  'D120',
  'A hook runs at its moment, told the session, the round and how that ended, and the journal has what it printed',
)
test('hooks run at their moments, in order, and are told which', async () => {
  const { means, ran } = hooked(
    ['on_end', 'before_round', 'on_done', 'after_round', 'on_claim'].map(on => hook(on as HookMoment)),
  )
  const { events, outcome } = await claiming({ hooks: means })
  expect(outcome).toMatchObject({ kind: 'done' })
  expect(ran).toEqual(['before_round 1', 'after_round 1 worked', 'on_claim 1', 'on_done 1 done', 'on_end 1 done'])
  expect(ofType(events, 'hook-ended').map(({ hook, status }) => `${hook} ${status}`)).toHaveLength(5)
  expect(events.at(-1)?.type).toBe('session-ended')
})

promise('D121', 'What a hook on_claim refuses, it refuses with its own words: the next round and the person read them')
test('a hook refuses a claim with its own words, and only where it is to refuse', async () => {
  const red = (_: Hook, runs: number) => (runs === 1 ? says('CI of main is red.\n', 1) : undefined)
  const { means } = hooked([hook('on_claim', { refuses: true })], red)
  const { events, inputs, outcome } = await claiming({ hooks: means })
  expect(outcome).toMatchObject({ kind: 'done' })
  const [refused] = ofType(events, 'done-refused')
  expect(refused).toMatchObject({ reason: 'hook-refused', detail: 'the hook on_claim says: CI of main is red.' })
  expect(inputs[1]).toContain('CI of main is red.')
  const { means: warning } = hooked([hook('on_claim')], red)
  const warned = await claiming({ hooks: warning })
  expect(ofType(warned.events, 'done-refused')).toEqual([])
  expect(ofType(warned.events, 'hook-ended')).toMatchObject([{ status: 'failed', output: 'CI of main is red.\n' }])
})

test('a hook that changes files of a claim has it refused, and the next claim is looked at anew', async () => {
  let tree = 'before'
  const { means, ran } = hooked([hook('on_claim')], (_, runs) => {
    if (runs === 1) tree = 'after'
    return undefined
  })
  const { events } = await claiming({ hooks: means, tree: () => tree })
  expect(ofType(events, 'done-refused')).toMatchObject([{ reason: 'tree-changed' }])
  expect(ran).toEqual(['on_claim 1', 'on_claim 2'])
})

promise(
  'D122',
  'A hook after a round can refuse the claim of that round; one before a round ends the session for a person',
)
test('a hook after a round refuses what that round claims, and the next one is told what it printed', async () => {
  const { means } = hooked([hook('after_round', { refuses: true })], (_, runs) =>
    runs === 1 ? says('lint: 3 errors', 2) : undefined,
  )
  const { events, inputs } = await claiming({ hooks: means })
  expect(ofType(events, 'done-refused')).toMatchObject([{ reason: 'hook-refused', round: 1 }])
  expect(inputs[1]).toContain('the hook after_round says: lint: 3 errors')
  const silent = hooked([hook('after_round', { refuses: true })], (_, runs) => (runs === 1 ? says('', 2) : undefined))
  const without = await playSession([() => worked, () => worked], {
    limits: { rounds: 2 },
    memory: () => UNCLAIMED,
    folder,
    hooks: silent.means,
  })
  expect(without.inputs[1]).toContain('the hook after_round fails (exit code 2).')
})

test('a hook before a round keeps it from beginning, and the session waits for a person', async () => {
  const { means, ran } = hooked([hook('before_round', { refuses: true }), hook('on_end')], ({ on }) =>
    on === 'before_round' ? { kind: 'timed-out', output: '', durationMs: 1000 } : undefined,
  )
  const { events, outcome } = await claiming({ hooks: means })
  expect(outcome).toMatchObject({ kind: 'needs-person', reason: 'A hook before_round does not let round 1 begin.' })
  expect(ofType(events, 'round-started')).toEqual([])
  expect(ran).toEqual(['before_round 1', 'on_end 0 needs-person'])
})

test('a person who interrupts breaks off the hook that runs, and it runs again', async () => {
  let breakOff = () => {}
  const ran: string[] = []
  const means: HookMeans = {
    hooks: [hook('before_round', { refuses: true })],
    run: async (each, { signal }) => {
      ran.push(each.on)
      if (ran.length > 1) return says('', 0)
      const broken = new Promise<End>(resolve => {
        signal.addEventListener('abort', () => resolve({ kind: 'broken-off', output: '', durationMs: 1 }))
      })
      breakOff()
      return await broken
    },
  }
  const { outcome } = await claiming({
    hooks: means,
    onBegin: ({ runner }) => {
      breakOff = () => runner.interrupt()
    },
  })
  expect(outcome).toMatchObject({ kind: 'done' })
  expect(ran).toEqual(['before_round', 'before_round'])
})

test('where a person ends the session, no hook but the last one runs', async () => {
  const { means, ran } = hooked(['after_round', 'on_done', 'on_end'].map(on => hook(on as HookMoment)))
  const { outcome } = await claiming({ hooks: means, onBegin: ({ asked }) => asked.endNow('SIGTERM') })
  expect(outcome).toEqual({ kind: 'interrupted', by: 'SIGTERM' })
  expect(ran).toEqual(['on_end 0 interrupted'])
})
