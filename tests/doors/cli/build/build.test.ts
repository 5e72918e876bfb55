import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { buildScript, createBuildRepository } from '../../../../src/demo/build.ts'
import { mostAtOnce, openBuild, planOf, readAt, UNATTENDED, verdictsOf, workOf } from '../../../support/build-scene.ts'
import { codemachine } from '../../../support/codemachine.ts'
import { git } from '../../../support/place.ts'
import { processesOf } from '../../../support/processes.ts'
import { promise } from '../../../support/promise.ts'
import { openRealScene } from '../../../support/real-scene.ts'
import { eventsOf } from '../../../support/scene.ts'

promise('E2', 'A team of agents builds from a specification')
test('a team of agents builds a small program in the sandbox, tries again what falls short, and leaves to a person what it cannot do', async () => {
  await using scene = await openBuild(buildScript('instant', { impossibleTask: true }), null, {
    open: openRealScene,
    git: false,
  })
  const { place } = scene
  await createBuildRepository(place.directory, place.env)
  const args = ['start', ...UNATTENDED, '--verify', 'node --test']
  const { exitCode, stderr, events } = await codemachine(place, args, { boundMs: 180_000 })
  expect([exitCode, stderr]).toEqual([4, `To continue: codemachine resume ${events[0]?.session}\n`])

  expect(events[0]).toMatchObject({ template: 'build', sandbox: 'workspace-write', network: false })
  expect(eventsOf(events, 'round-started').map(({ part }) => part)).toEqual([
    'team-building',
    'orchestration',
    'summary',
    'orchestration',
    'summary',
    'orchestration',
    'summary',
  ])
  expect(eventsOf(events, 'plan-ready')).toMatchObject([
    { tasks: { length: 8 }, agents: ['backend-dev', 'frontend-dev', 'qa-engineer', 'software-architect'] },
  ])
  expect(workOf(events).toSorted()).toEqual(
    [
      'software-architect T1',
      'qa-engineer T2',
      'backend-dev T3',
      'frontend-dev T4',
      'qa-engineer T6',
      'frontend-dev T4',
      'backend-dev T5',
      ...Array(5).fill('qa-engineer T7'),
      'software-architect T8',
    ]
      .map(each => `${each} completed`)
      .toSorted(),
  )
  expect(mostAtOnce(events)).toBe(3)
  expect(verdictsOf(events)).toEqual([
    ...['T1', 'T2', 'T3', 'T4', 'T5', 'T6'].map(task => `${task} done`),
    'T7 failed',
    'T8 done',
    'T7 parked',
  ])
  const lookedAt = eventsOf(events, 'gate-ended').map(({ when, status }) => `${when} ${status}`)
  expect(lookedAt.slice(-1)).toEqual(['tasks passed'])

  // What stands there now.
  const plan = planOf(scene)
  expect(plan.filter(({ done }) => !done).map(({ id }) => id)).toEqual(['T7'])
  expect(plan[6]?.parked).toEqual(expect.any(String))
  const run = (...args: string[]) =>
    execFileSync(process.execPath, args, { cwd: place.directory, env: testEnv(place.env), encoding: 'utf8' })
  expect(run('--test')).toMatch(/fail 0/)
  const page = join(place.root, 'index.html')
  run('bin/reading-list.js', 'books.json', page)
  expect(readFileSync(page, 'utf8')).toContain('C++ &lt;in&gt; a Nutshell &amp; Beyond')
  expect(git(place, 'status', '--porcelain')).toBe('')
  expect(git(place, 'log', '--format=%s').split('\n')).toHaveLength(3)
  for (const name of ['software-architect', 'backend', 'frontend', 'qa-engineer'])
    expect(readAt(scene, `.codemachine/memory/.${name}-memory.md`)).toContain('T')
  expect(readAt(scene, '.codemachine/plan/summary.md')).toMatch(
    /^# How the build stands\n\nThe build is not done, and needs a person: One task is parked.*\n\n## Done\n[\s\S]*\n## What was summed up last\n\nSeven of eight tasks are done/,
  )
  expect(scene.memory('report.md')).toContain('T7')
  expect(processesOf(place)).toEqual([])
})

/** Vitest's own settings would change what a program's tests print. */
function testEnv(env: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !/^(NODE_|VITEST)/.test(name)))
}
