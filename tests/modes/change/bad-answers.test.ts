import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { LINES_LOOK } from '../../../src/modes/change/execution/fold.ts'
import { answering, changeAfter, planOf, playChange } from '../../support/change-session.ts'
import { check, task } from '../../support/change-work.ts'
import { ofType } from '../../support/played-session.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'codemachine-change-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const json = JSON.stringify
const GOOD_PLAN = planOf()
const withCommand = (run: string) => json(planOf({ verification: [{ run, why: 'it shows it' }] }))

describe('an answer that is no plan is told to the next planning round, whose plan is then carried out', () => {
  test.each<[string, string, string]>([
    ['prose', 'I would add a limit to the router, and test it.', 'does not contain the requested JSON object'],
    ['two objects', `${json(GOOD_PLAN)}\n\nor rather\n\n${json(GOOD_PLAN)}`, 'The message has 2 JSON objects'],
    ['5 MB', json(planOf({ description: 'x'.repeat(5_000_000) })), 'may have at most 262144 bytes'],
    ['70 KiB', json(planOf({ description: 'x'.repeat(70_000) })), '(60 KiB) are the most. Say it in fewer words'],
    ['a command of two lines', withCommand('npm test\nnpm run lint'), '`verification[0].run` has line breaks'],
    ['sudo', withCommand('sudo npm test'), '`verification[0].run` uses `sudo`'],
    ['a command that proves nothing', withCommand('true; echo ok'), '`verification[0].run` proves nothing'],
    ['a command that is prose', withCommand('Check that it works'), '`verification[0].run` is a sentence'],
  ])('%s', async (_, message, told) => {
    const { outcome, inputs } = await playChange([answering(message), answering(GOOD_PLAN)], {
      folder,
      change: { planOnly: true },
      says: [['accept']],
    })
    expect(inputs[1]).toContain(told)
    expect(outcome).toEqual({ kind: 'planned' })
  })
})

describe('an answer that is no list of tasks is told to the next round, whose tasks are then carried out', () => {
  const FINE = [
    task('T1', { outputs: { limit: 'how many a minute' } }),
    check('T2', 'grep -q limit api.js'),
    task('T3', { inputs: { it: 'T1.limit' }, files: ['docs.md'] }),
    check('T4', 'grep -q minute docs.md'),
  ]
  const asked = (tasks: readonly object[]) => json({ tasks })
  const circle = [
    task('T1', { inputs: { a: 'T3.x' }, outputs: { x: 'x' } }),
    check('T2', 'npm test'),
    task('T3', { inputs: { a: 'T1.x' }, outputs: { x: 'x' } }),
    check('T4', 'npm test'),
  ]

  test.each<[string, string, string]>([
    ['prose', 'First the router, then the docs.', 'does not contain the requested JSON object'],
    ['two objects', `${asked(FINE)} ${asked(FINE)}`, 'The message has 2 JSON objects'],
    ['5 MB', asked([task('T1', { description: 'x'.repeat(5_000_000) })]), 'may have at most 262144 bytes'],
    ['no tasks', asked([]), '`tasks` is empty'],
    [
      '500 tasks',
      asked(Array.from({ length: 500 }, (_, at) => check(`T${at}`, 'npm test'))),
      '`tasks` has 500 entries; 50 are the most',
    ],
    [
      'an input that nobody gives',
      asked([task('T1', { inputs: { a: 'T9.x' } }), check('T2', 'npm test')]),
      'there is no task "T9"',
    ],
    ['a circle', asked(circle), 'T3 comes later'],
    ['a command of two lines', asked([task('T1'), check('T2', 'npm test\ntrue')]), '`tasks[1].run` has line breaks'],
    ['sudo', asked([task('T1'), check('T2', 'sudo npm test')]), '`tasks[1].run` uses `sudo`'],
    ['a verification in prose', asked([task('T1'), check('T2', 'See that it works')]), '`tasks[1].run` is a sentence'],
    ['a task without its verification', asked([task('T1')]), 'no VERIFICATION comes after it'],
    ['another shape', asked([{ ...task('T1'), type: 'FIXING' }]), '`tasks[0].type` has to be one of'],
  ])('%s', async (_, message, told) => {
    let tree = 0
    const changes = (outputs: object) => answering({ outputs }, async () => void tree++)
    const plays = [answering(GOOD_PLAN), answering(message)]
    // As people write them: inputs and outputs are objects.
    plays.push(answering(asked(FINE)), changes({ limit: '60' }), changes({}), answering('Done.'))
    const { events, inputs } = await playChange(plays, {
      folder,
      says: [['accept']],
      tree: () => `tree ${tree}`,
      looks: { [LINES_LOOK]: async () => ({}) },
      command: () => (tree > 0 ? {} : { status: 'failed', exitCode: 1, output: 'not yet' }),
    })
    expect(inputs[2]).toContain(told)
    expect(ofType(events, 'round-started').map(({ part }) => part)).toEqual([
      ...['plan', 'decompose', 'decompose', 'act', 'act', 'summary'],
    ])
    const { tasks } = changeAfter(events).execution
    expect(tasks.map(({ spec, status }) => `${spec.id} ${status}`)).toEqual(FINE.map(({ id }) => `${id} COMPLETED`))
    expect(inputs[4]).toContain('60')
  })
})
