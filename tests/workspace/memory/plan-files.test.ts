import { lstat, mkdir, mkdtemp, readdir, readFile, realpath, rm, symlink, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, test } from 'vitest'
import { planPaths } from '../../../src/workspace/memory/memory-paths.ts'
import {
  archiveEarlierPlan,
  checkPlanFiles,
  makeProjectFolders,
  parsePlan,
  writePlanSummary,
} from '../../../src/workspace/memory/plan-files.ts'

const task = (id: string, more: Record<string, unknown> = {}) => ({
  id,
  name: `Task ${id}`,
  details: 'Do it.',
  acceptanceCriteria: 'npm test passes',
  phase: 'Building',
  done: false,
  ...more,
})
const file = (...tasks: unknown[]) => JSON.stringify({ tasks })

function problems(text: string): readonly string[] {
  const plan = parsePlan(text)
  return plan.ok ? [] : plan.problems
}

describe('a plan', () => {
  it("has tasks in four phases, each with what can be checked; what else they have is the agents' own", () => {
    const plan = file(
      task('T1', { phase: 'Planning', owner: 'me' }),
      task('T2', { acceptanceCriteria: ['a', 'b'], subtasks: [{ id: 'T2.1', name: 's', details: '' }] }),
    )
    expect(parsePlan(plan)).toEqual({
      ok: true,
      tasks: [
        { id: 'T1', name: 'Task T1', phase: 'Planning' },
        { id: 'T2', name: 'Task T2', phase: 'Building' },
      ],
    })
  })

  it.each<[string, string]>([
    [file(task('T1', { phase: 'Build' })), 'tasks[0].phase is "Build"; use Planning, Building, Testing or Runtime.'],
    [file(task('T1', { done: true })), 'tasks[0].done is true; use false, for nobody has worked on it yet.'],
    [
      file(task('T1', { acceptanceCriteria: '' })),
      'tasks[0].acceptanceCriteria is ""; use a string, or a list of strings, that says what can be checked.',
    ],
    [
      file(task('T1', { acceptanceCriteria: [] })),
      'tasks[0].acceptanceCriteria is an empty list; use a string, or a list of strings, that says what can be checked.',
    ],
    [
      file(task('T1', { acceptanceCriteria: ['a', ' '] })),
      'tasks[0].acceptanceCriteria[1] is " "; use a string that says what can be checked.',
    ],
    [
      file(task('T1', { details: undefined })),
      'tasks[0].details is missing; use a string that says what is to be done.',
    ],
    [file(task('T 1')), 'tasks[0].id is "T 1"; use a short string without spaces, such as "T1".'],
    [
      file(task('T1', { name: 'a\nb' })),
      'tasks[0].name is "a\\nb"; use a line of at most 200 characters that says what the task is.',
    ],
    [
      file(task('T1'), task('T2', { subtasks: [7] })),
      'tasks[1].subtasks[0] is 7; write { "id": "T1.1", "name": "…", "details": "…" }.',
    ],
    [file(task('T1', { subtasks: null })), 'tasks[0].subtasks is null; use a list, or leave it out.'],
    [file(), 'tasks is an empty list; write a list with at least one task.'],
    ['{}', 'tasks is missing; write a list with at least one task.'],
    ['[]', 'tasks is missing; write a list with at least one task.'],
    ['null', 'the whole is null; write { "tasks": [ … ] }.'],
    ['{', 'line 1, column 2: the file ends too early; write JSON without comments or trailing commas.'],
    [file(task('T1'), task('T1')), 'duplicate id "T1" at tasks[1]; give every task its own id.'],
    [
      file(task('T1', { subtasks: [{ id: 'T1', name: 's', details: '' }] })),
      'duplicate id "T1" at tasks[0].subtasks[0]; give every task its own id.',
    ],
    [
      file(...Array.from({ length: 501 }, (_, index) => task(`T${index}`))),
      'tasks has 501 entries; write at most 500.',
    ],
  ])('that is wrong is told with its place and its mend (%#)', (text, sentence) => {
    expect(problems(text)).toEqual([sentence])
  })

  it('tells everything that is wrong at once, up to ten things', () => {
    expect(problems(file(task('T1', { phase: 'x', done: 1 }), task('T1')))).toHaveLength(3)
    const many = problems(file(...Array.from({ length: 40 }, (_, index) => task(`T${index}`, { phase: 'x' }))))
    expect([many.length, many[9], many[10]]).toEqual([
      11,
      'tasks[9].phase is "x"; use Planning, Building, Testing or Runtime.',
      '… and 30 more.',
    ])
  })
})

let directory: string

beforeEach(async () => {
  directory = await realpath(await mkdtemp(join(tmpdir(), 'plan-')))
  await makeProjectFolders(directory)
})

afterEach(async () => {
  await rm(directory, { recursive: true, force: true })
})

const NO_TASKS = '{\n  "tasks": []\n}\n'

describe('what a team builder has written', () => {
  const prompts = { agents: ['frontend-dev'], problems: [] }

  it('is a plan, and prompts that can be used', async () => {
    await writeFile(planPaths(directory).tasks, file(task('T1')))
    expect(await checkPlanFiles(directory, prompts)).toEqual({
      ok: true,
      tasks: [{ id: 'T1', name: 'Task T1', phase: 'Building' }],
      agents: ['frontend-dev'],
    })
  })

  it('is told to be wrong with the file of each thing', async () => {
    const ofPrompt = '.codemachine/agents/painter.md: There is no agent "painter".'
    const wrong = { agents: [], problems: [ofPrompt] }
    await writeFile(planPaths(directory).tasks, file(task('T1', { phase: 'x' })))
    const ofPlan = '.codemachine/plan/tasks.json: tasks[0].phase is "x"; use Planning, Building, Testing or Runtime.'
    expect(await checkPlanFiles(directory, wrong)).toEqual({ ok: false, problems: [ofPlan, ofPrompt] })
    await writeFile(planPaths(directory).tasks, file(task('T1')))
    expect(await checkPlanFiles(directory, wrong)).toEqual({ ok: false, problems: [ofPrompt] })
  })

  it('is told to be wrong where it is gone, no text, too large or behind a link', async () => {
    const { tasks, folder } = planPaths(directory)
    const problemNow = async () => {
      const checked = await checkPlanFiles(directory, prompts)
      return checked.ok ? [] : checked.problems
    }
    const at = '.codemachine/plan/tasks.json: '
    expect(await problemNow()).toEqual([`${at}it is missing; write { "tasks": [ … ] }.`])
    await writeFile(tasks, Buffer.from([0xff]))
    expect(await problemNow()).toEqual([`${at}it is not valid UTF-8; write it as UTF-8 text.`])
    await truncate(tasks, 5_000_000)
    expect(await problemNow()).toEqual([`${at}it is larger than 1 MiB; keep it short.`])
    await rm(folder, { recursive: true })
    await symlink('/etc', folder)
    expect(await problemNow()).toEqual([`${at}its folder is a link or a file; make it a folder.`])
  })
})

test('a new build begins without tasks, and the plan and summary of the one before are kept', async () => {
  const { tasks, earlier, summary } = planPaths(directory)
  await archiveEarlierPlan(directory, { id: '20261121_1' })
  expect([await readFile(tasks, 'utf8'), await readdir(earlier)]).toEqual([NO_TASKS, []])
  await writeFile(tasks, 'not even JSON')
  await writePlanSummary(directory, ' It is built. ')
  expect(await readFile(summary, 'utf8')).toBe('It is built.\n')
  await archiveEarlierPlan(directory, { id: '20261121_2', planOf: '20261121_1' })
  expect(await readFile(tasks, 'utf8')).toBe(NO_TASKS)
  expect(await readFile(join(earlier, '20261121_1.json'), 'utf8')).toBe('not even JSON')
  expect(await readFile(join(earlier, '20261121_1.md'), 'utf8')).toBe('It is built.\n')
  expect(await readdir(join(directory, '.codemachine/plan'))).not.toContain('summary.md')
})

test('the plans of the last 20 builds are kept', async () => {
  const { tasks, earlier } = planPaths(directory)
  for (let number = 1; number <= 23; number += 1) {
    await writeFile(tasks, `${number}`)
    await archiveEarlierPlan(directory, { id: `20261121_${number + 1}`, planOf: `20261121_${number}` })
  }
  const kept = await readdir(earlier)
  expect(kept).toHaveLength(20)
  expect(kept).not.toContain('20261121_3.json')
  expect(kept).toContain('20261121_4.json')
})

test('a plan of which nobody knows whose it is takes the place of no other', async () => {
  const { tasks, earlier } = planPaths(directory)
  const begin = async (id: string, planOf: string) => {
    await writeFile(tasks, id)
    await archiveEarlierPlan(directory, { id, planOf })
  }
  await begin('20261121_2', '20261121_1')
  // The session in between was never journaled.
  await begin('20261121_4', '20261121_1')
  expect((await readdir(earlier)).sort()).toEqual(['20261121_1.json', 'before-20261121_4.json'])
  expect(await readFile(join(earlier, '20261121_1.json'), 'utf8')).toBe('20261121_2')
})

test('a plan that is a link is moved itself, and a folder that leads away is refused', async () => {
  const { tasks, earlier, folder } = planPaths(directory)
  const target = join(directory, 'mine.json')
  await writeFile(target, '{}')
  await symlink(target, tasks)
  await archiveEarlierPlan(directory, { id: '20261121_1' })
  expect(await readFile(target, 'utf8')).toBe('{}')
  expect((await lstat(join(earlier, 'before-20261121_1.json'))).isSymbolicLink()).toBe(true)
  await rm(folder, { recursive: true })
  await mkdir(join(directory, 'elsewhere'))
  await symlink(join(directory, 'elsewhere'), folder)
  const refusal = `${folder} is a link; move it away, so that codemachine can make a folder in its place.`
  await expect(archiveEarlierPlan(directory, { id: '20261121_2' })).rejects.toThrow(refusal)
  await expect(writePlanSummary(directory, 'x')).rejects.toThrow(refusal)
  expect(await readdir(join(directory, 'elsewhere'))).toEqual([])
})
