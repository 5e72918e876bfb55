import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { git } from '../../../support/place.ts'
import { promise } from '../../../support/promise.ts'
import { eventsOf } from '../../../support/scene.ts'
import { test } from '../../../support/side-by-side.ts'
import { problemOfMounting } from '../../../support/skipped.ts'
import { GREETING, openTeamScene, plans, runShell, runs, works } from '../../../support/team-scene.ts'

const FLAGS = ['--yes', '--json', '--no-keep-awake'] as const

function jsonIn(folder: string): unknown[] {
  const names = readdirSync(folder).filter(name => !name.startsWith('.'))
  return names.sort().map(name => JSON.parse(readFileSync(join(folder, name), 'utf8')))
}

promise(
  'T14',
  'Two teams run side by side in one workspace; a step or a review alone keeps the plan of its project; a project that is deleted in the middle is said in a sentence',
)
test('two teams of the same goal run side by side, each in a project of its own, with one log', async () => {
  await using scene = await openTeamScene(GREETING)
  const { directory } = scene.place
  const ended = await Promise.all([1, 2].map(() => scene.command(['team', 'A greeting', ...FLAGS]).ended))
  expect(ended.map(({ exitCode }) => exitCode)).toEqual([0, 0])
  const projects = [scene.project(1), scene.project(2)]
  for (const project of projects) expect(readdirSync(project)).toContain('start.sh')
  const all = jsonIn(join(directory, 'runs')) as { project_dir: string; steps_executed: number }[]
  expect(all.map(({ project_dir }) => project_dir).toSorted()).toEqual(projects.toSorted())
  expect(all.map(each => each.steps_executed)).toEqual([3, 3])
  const log = scene.log()
  for (const line of log) expect(line).toMatch(/^\[\d{4}-\d\d-\d\dT[\d:.]{12}[+-]\d\d:\d\d\] \[[A-Z ]+\] \S/)
  for (const prefix of ['[ORCH START]', '[ORCH REVIEW]', '[ORCH COMPLETE]'])
    expect(log.filter(line => line.includes(prefix))).toHaveLength(2)
  expect(git(scene.place, 'status', '--porcelain')).toBe('')
})

promise('T14')
test('a step alone continues from what the project was made by, and leaves its plan there', async () => {
  await using scene = await openTeamScene({ ...GREETING, worker: { 1: [runs('echo more > more.txt')] } })
  expect((await scene.run('team', 'plan', 'A greeting', '--no-keep-awake')).exitCode).toBe(0)
  const { plan } = JSON.parse(scene.file('PROJECT_INFO.json'))
  expect(plan.steps).toHaveLength(3)
  const worked = await scene.run('team', 'work', 'Write more.txt', '--project', scene.project(), ...FLAGS)
  expect(worked.exitCode, worked.stderr).toBe(0)
  expect(JSON.parse(scene.file('PROJECT_INFO.json'))).toMatchObject({ goal: 'A greeting', plan })
  const [, step] = jsonIn(join(scene.place.directory, 'runs'))
  expect(step).toMatchObject({
    goal: 'A greeting',
    steps_executed: 1,
    results: [{ description: 'Write more.txt', worker_history: [{ command: 'echo more > more.txt' }] }],
    review: null,
  })
  expect(readdirSync(join(scene.place.directory, 'runs'))).toContainEqual(expect.stringMatching(/^write-more-txt-/))
})

test.each(['--yolo', '--sandbox=read-only'])(
  'where nothing is denied to agents (%s), no file stands for what would be',
  async flag => {
    await using scene = await openTeamScene({
      planner: [[plans('Look.')]],
      worker: { 1: [[runShell('ls -A'), works()]] },
    })
    const { exitCode, stderr, events } = await scene.run('team', 'A greeting', ...FLAGS, flag)
    expect(exitCode, stderr).toBe(0)
    expect(eventsOf(events, 'shell-ran')).toMatchObject([{ exitCode: 0, stdout: expect.not.stringContaining('.env') }])
  },
)

promise('T14')
test('a project that is deleted in the middle ends the session in a sentence, and the file of its run says so', async () => {
  await using scene = await openTeamScene({
    planner: [[plans('Wait.')]],
    worker: { 1: [runs('sleep 3; echo late > late.txt')] },
  })
  await using run = scene.command(['team', 'A greeting', ...FLAGS])
  await run.event('round-started', ({ part }) => part === 'work')
  const project = scene.project()
  rmSync(project, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 })
  const { exitCode, stderr } = await run.ended
  expect(exitCode, stderr).toBe(4)
  expect(stderr).toContain(`codemachine: ${project} was deleted, so the session ended.`)
  expect(stderr).not.toContain('bug')
  expect(scene.runFile()).toMatchObject({ project_dir: project, outcome: 'needs-person', exit_code: 4 })
})

const mountProblem = problemOfMounting()
const skipped = mountProblem === null ? '' : ` (skipped: ${mountProblem})`

describe.skipIf(mountProblem !== null)(`on a full disk the run goes on${skipped}`, () => {
  test('a sentence says what could not be written, and the file of the run is the last one that was whole', async () => {
    await using scene = await openTeamScene({
      planner: [[plans('Write little.', 'Print much.', 'Write more.')]],
      worker: { 1: [runs('echo 1 > 1')], 2: [runs('head -c 16000 /dev/zero | tr "\\0" x')], 3: [[works()]] },
    })
    const folder = join(scene.place.directory, 'runs')
    mkdirSync(folder)
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=16k', 'tmpfs', folder])
    try {
      const { exitCode, stderr, events } = await scene.run('team', 'A greeting', ...FLAGS)
      expect(exitCode, stderr).toBe(0)
      const said = eventsOf(events, 'warning').map(({ message }) => message)
      expect(said).toContainEqual(
        expect.stringMatching(/runs\/.*\.json could not be written: no room is left on the disk\.$/),
      )
      expect(jsonIn(folder)).toMatchObject([{ steps_executed: 1, results: [{ step_id: 1 }], outcome: null }])
      expect(scene.log().at(-1)).toContain('[ORCH COMPLETE]')
    } finally {
      execFileSync('umount', ['--lazy', folder])
    }
  })
})
