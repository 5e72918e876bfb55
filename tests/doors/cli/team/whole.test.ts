import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { reply, shell } from '../../../../src/demo/model/reply.ts'
import { processesOf, sandboxesOf } from '../../../support/processes.ts'
import { promise } from '../../../support/promise.ts'
import { eventsOf } from '../../../support/scene.ts'
import { describe, test } from '../../../support/side-by-side.ts'
import {
  GREETING,
  GREETING_STEPWISE,
  openTeamScene,
  plans,
  reviews,
  runShell,
  runs,
  type TeamScene,
  type TeamScript,
  tests,
  works,
} from '../../../support/team-scene.ts'

const GOAL = 'A greeting, with a start script!'
const team = (scene: TeamScene, ...more: string[]) =>
  scene.run('team', GOAL, '--yes', '--json', '--no-keep-awake', ...more)

interface RunFile {
  results: { step_id: number; description: string; worker_history: { command: string; stdout: string }[] }[]
}

const DESCRIPTIONS = ['Write greet.sh.', 'Write start.sh.', 'Write a README.']

describe('whole teams', () => {
  promise('B101')
  promise(
    'T48',
    'A goal becomes a project whose start script codemachine has run, both ways of working, with its files as they are described',
  )
  test.each([
    ['as codex works', GREETING, []],
    ['stepwise', GREETING_STEPWISE, ['--stepwise']],
  ] as const)(
    'a goal becomes a project of three steps with a start script that has run: %s',
    async (mode, script, flags) => {
      await using scene = await openTeamScene(script)
      const { exitCode, stderr, events } = await team(scene, ...flags)
      expect(exitCode, stderr).toBe(0)
      const directory = scene.project()
      expect(directory).toMatch(/\/projects\/a-greeting-with-a-start-script-\d{8}-\d{6}$/)
      expect(eventsOf(events, 'session-ended')).toMatchObject([{ outcome: { kind: 'done' } }])
      expect([...processesOf(scene.place), ...sandboxesOf(scene.place)]).toEqual([])
      for (const folder of ['projects', 'runs', 'logs'])
        expect(readFileSync(join(scene.place.directory, folder, '.gitignore'), 'utf8').trim()).toBe('*')
      expect(existsSync(join(directory, '.git'))).toBe(true)
      expect(statSync(join(directory, 'start.sh')).mode & 0o111).toBeGreaterThan(0)
      expect(readdirSync(directory).toSorted()).toEqual(
        ['.codemachine', '.git', 'PROJECT_INFO.json', 'README.md', 'greet.sh', 'start.sh'].toSorted(),
      )

      const plan = {
        goal: 'The goal, restated.',
        steps: DESCRIPTIONS.map((description, at) => ({
          id: at + 1,
          description,
          network: false,
          needs: at === 1 ? [1] : [],
        })),
      }
      const review = { overall_assessment: 'It is good.', issues: [], suggestions: ['Add more tests.'] }
      const info = JSON.parse(scene.file('PROJECT_INFO.json'))
      const [{ ran, duration_ms, ...way }] = info.how_to_test
      expect(ran).toMatch(/^ran here: exit 0, [\d.]+ m?s$/)
      expect(duration_ms).toBeGreaterThan(0)
      expect(way).toEqual({
        for: 'runs ./start.sh',
        command: `cd ${directory} && ./start.sh`,
        run: './start.sh',
        exit_code: 0,
      })
      const { goal, project_dir, plan: planned, review: reviewed } = info
      expect({ goal, project_dir, planned, reviewed }).toEqual({
        goal: GOAL,
        project_dir: directory,
        planned: plan,
        reviewed: review,
      })

      expect(readdirSync(join(scene.place.directory, 'runs')).filter(name => name.endsWith('.json'))).toEqual([
        expect.stringMatching(/^a-greeting-with-a-start-script-\d{4}-\d\d-\d\d\.json$/),
      ])
      const run = scene.runFile() as RunFile
      expect(run).toMatchObject({ goal: GOAL, steps_executed: 3, review })
      expect(run.results.map(({ step_id, description }) => [step_id, description])).toEqual(
        DESCRIPTIONS.map((description, at) => [at + 1, description]),
      )
      const greeted = run.results[0]?.worker_history.find(({ command }) => command.includes('sh greet.sh you'))
      expect(greeted).toMatchObject({ stderr: '', returncode: 0 })
      expect(greeted?.stdout.trim()).toBe('Hello, you!')

      const lines = scene.log()
      for (const line of lines) expect(line).toMatch(/^\[\d{4}-\d\d-\d\dT[\d:.]{12}[+-]\d\d:\d\d\] \[[A-Z ]+\] /)
      const prefixes = [...new Set(lines.map(line => /\] \[([A-Z ]+)\]/.exec(line)?.[1]))]
      for (const role of ['PLANNER', 'WORKER', 'REVIEWER'])
        for (const what of ['REQUEST', 'RAW RESPONSE', 'PARSED']) expect(prefixes).toContain(`${role} ${what}`)
      for (const what of ['START', 'EXECUTE STEP', 'REVIEW', 'COMPLETE']) expect(prefixes).toContain(`ORCH ${what}`)

      // Each step has a thread of its own, and what came before is told.
      expect(scene.begun(mode === 'stepwise' ? 'stepwise' : 'worker')).toHaveLength(3)
      const tools = scene.begun(mode === 'stepwise' ? 'stepwise' : 'worker').map(request => request.tools)
      expect(tools.every(names => names.includes('exec_command') === (mode !== 'stepwise'))).toBe(true)
    },
  )
})

describe('what does not come out well', () => {
  const failing: TeamScript = {
    ...GREETING,
    planner: [[plans('Fail.', { description: 'Needs it.', needs: [1] }, 'Goes on.')]],
    worker: {
      1: [[reply(shell('exit 3', { login: false })), works({ done: false, thoughts: 'There is no such thing.' })]],
      3: [runs('echo yes > yes.txt')],
    },
    tester: [[tests()]],
  }

  promise(
    'T49',
    'A step that fails, a check that fails and an issue of high severity are worked on again, and keep the session from being done',
  )
  test('a step that fails is tried twice, what needs it is left out, and the rest is done', async () => {
    await using scene = await openTeamScene(failing)
    const { exitCode, events } = await team(scene)
    expect(exitCode).toBe(4)
    expect(eventsOf(events, 'session-ended')).toMatchObject([{ outcome: { kind: 'needs-person' } }])
    const tried = scene.begun('worker').map(({ userTexts }) => /^Do step (\d)/m.exec(userTexts.join('\n'))?.[1])
    expect(tried).toEqual(['1', '1', '3'])
    expect(scene.begun('worker')[1]?.userTexts.join('\n')).toContain('There is no such thing.')
    expect(scene.file('yes.txt')).toBe('yes\n')
    expect(scene.begun('reviewer')[0]?.userTexts.join('\n')).toContain('"failed"')
    expect(JSON.parse(scene.file('PROJECT_INFO.json'))).toMatchObject({ goal: GOAL, review: { issues: [] } })
  })

  test('a team that had the network, and goes on in a sandbox without it, tells its worker so', async () => {
    const script = { worker: { 1: [[works({ done: false, thoughts: 'It cannot be downloaded.' })]] } }
    await using scene = await openTeamScene(script)
    expect((await team(scene, '--network')).exitCode).toBe(4)
    const resumed = await scene.run('resume', '-C', scene.project(), '--sandbox', 'workspace-write')
    expect(resumed.exitCode, resumed.stderr).toBe(4)
    const told = scene.begun('worker').map(({ userTexts }) => userTexts.join('\n'))
    expect(told.map(text => text.includes('Commands reach the network.'))).toEqual([true, true, false, false])
  })

  test('a check that fails makes a step that says it is done one that is not', async () => {
    await using scene = await openTeamScene({
      planner: [[plans('Write it.')]],
      worker: {
        1: [
          [works({ checks: ['test -e it.txt'] })],
          [reply(shell('touch it.txt', { login: false })), works({ checks: ['test -e it.txt'] })],
        ],
      },
    })
    const { exitCode, stderr } = await team(scene)
    expect(exitCode, stderr).toBe(0)
    expect(scene.begun('worker')[1]?.userTexts.join('\n')).toContain('test -e it.txt')
  })

  promise('T49')
  test('an issue of high severity becomes a step, and it is reviewed again', async () => {
    await using scene = await openTeamScene({
      ...GREETING,
      worker: { ...GREETING.worker, 4: [runs(`echo 'echo "Good day, $1!"' > greet.sh`)] },
      reviewer: [
        [
          reviews(
            { description: 'It does not say good day.', severity: 'high' },
            { description: 'x', severity: 'low' },
          ),
        ],
        [reviews()],
      ],
    })
    const { exitCode, stderr } = await team(scene)
    expect(exitCode, stderr).toBe(0)
    expect(scene.begun('worker')).toHaveLength(4)
    expect(scene.begun('worker').at(-1)?.userTexts.join('\n')).toContain('It does not say good day.')
    expect(scene.begun('reviewer')).toHaveLength(2)
    expect(scene.file('greet.sh')).toContain('Good day')
    expect(scene.runFile()).toMatchObject({ steps_executed: 4, review: { overall_assessment: 'It is good.' } })
  })

  test('a plan that is none is asked for once and again three times, and no worker is asked', async () => {
    await using never = await openTeamScene({ planner: [[plans()]] })
    const ended = await team(never)
    expect(ended.exitCode).not.toBe(0)
    expect(never.begun('planner')).toHaveLength(4)
    expect(never.begun('worker')).toEqual([])
    expect(JSON.parse(never.file('PROJECT_INFO.json'))).toMatchObject({ goal: GOAL, plan: null, review: null })
  })

  test('what a command leaves running is ended, and it writes nowhere in the workspace but in the project', async () => {
    // Below /tmp agents may write everywhere.
    const workspace = await mkdtemp('/var/tmp/codemachine-workspace-')
    try {
      const line = 'setsid sleep 1001 >/dev/null 2>&1 & rm -rf ../* ../../*; echo x > ../leaked; echo x > inside; ls'
      await using scene = await openTeamScene({
        planner: [[plans('Misbehave.')]],
        worker: { 1: [[runShell(line), works()]] },
      })
      const { exitCode, stderr, events } = await team(scene, '-C', workspace)
      expect(exitCode, stderr).toBe(0)
      expect(eventsOf(events, 'shell-ran')).toMatchObject([{ status: 'passed', stdout: 'inside\n' }])
      expect(processesOf(scene.place).filter(each => each.includes('sleep 1001'))).toEqual([])
      expect(readdirSync(workspace).toSorted()).toEqual(['logs', 'projects', 'runs'])
      expect(readdirSync(join(workspace, 'runs'))).toHaveLength(2)
      expect(existsSync(join(workspace, 'projects', 'leaked'))).toBe(false)
    } finally {
      await rm(workspace, { recursive: true })
    }
  })
})
