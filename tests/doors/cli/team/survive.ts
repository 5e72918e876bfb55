import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { Recorded } from '../../../../src/core/events/events.ts'
import { type KillPoint, killsIn, startWithKills } from '../../../support/kill-points.ts'
import { eventsOf } from '../../../support/scene.ts'
import {
  askHuman,
  GREETING,
  openRealTeamScene,
  reviews,
  runShell,
  runs,
  type TeamScene,
  type TeamScript,
  works,
} from '../../../support/team-scene.ts'

const VALUE = 'sk-live+4711/"quoted"-end'

/** Three steps, of which the second runs a command with a secret, and one more for an issue of high severity. */
const SCRIPT: TeamScript = {
  ...GREETING,
  worker: {
    ...GREETING.worker,
    2: [
      [
        askHuman('SERVICE_API_KEY'),
        runShell('test -n "$SERVICE_API_KEY"; echo "$SERVICE_API_KEY"', 'SERVICE_API_KEY'),
        ...(GREETING.worker[2]?.[0] ?? [works()]),
      ],
    ],
    4: [runs(`echo 'echo "Good day, $1!"' > greet.sh`)],
  },
}

/** The SIGKILL at the nth event of this type. */
export const at = (event: Extract<KillPoint, { event: string }>['event'], when: 'before' | 'torn' | 'after', n = 1) =>
  ({ victim: 'codemachine', event, when, n }) satisfies KillPoint

/**
 * Has a team work with a secret that was set beforehand, killed at each of these points, one after the other, and resumed
 * after each; expects the end to which it comes undisturbed.
 */
export async function surviveTeam(points: readonly KillPoint[]): Promise<void> {
  // What the reviewer finds once does not depend on how often it is asked: it looks at what is there.
  const script = {
    ...SCRIPT,
    reviewer: [[reviews({ description: 'It does not say good day.', severity: 'high' as const })]],
  }
  await using scene = await openRealTeamScene({
    ...script,
    reviewer: [
      [
        request => {
          const isMended =
            request.userTexts.join('\n').includes('"step":4') || request.userTexts.join('\n').includes('"step": 4')
          const answer = isMended ? reviews() : script.reviewer[0]?.[0]
          return typeof answer === 'function' ? answer(request) : (answer ?? { kind: 'close-before-headers' })
        },
      ],
    ],
  })
  const flags = ['--yes', '--json', '--no-keep-awake']
  const begin = ['team', 'A greeting, with a start script!', ...flags]
  const start = async (...args: string[]) => {
    await using run = startWithKills(scene.place, args, points)
    return await run.ended
  }
  let ended = await start(...begin)
  for (let resumes = 0; resumes < points.length + 3; resumes++) {
    if (ended.signal === null && ended.exitCode !== 4) break
    if (hasEndedDone(scene)) break
    if (ended.exitCode === 4) {
      const set = await scene.setSecret('SERVICE_API_KEY', VALUE)
      expect(set.exitCode, set.stderr).toBe(0)
    }
    ended =
      journalOf(scene).length > 0
        ? await start('resume', '-C', scene.project(), ...flags.slice(1))
        : await start(...begin)
  }
  if (ended.signal === null) expect(ended.exitCode, ended.stderr).toBe(0)
  expect(killsIn(scene.place)).toHaveLength(points.length)
  expectWhole(scene)
}

function journalOf({ place }: TeamScene): Recorded[] {
  const state = join(place.home, '.codemachine', 'state')
  if (!existsSync(state)) return []
  const journals = readdirSync(state, { recursive: true, encoding: 'utf8' }).filter(path =>
    path.endsWith('journal.ndjson'),
  )
  expect(journals.length).toBeLessThanOrEqual(1)
  return journals.flatMap(path =>
    readFileSync(join(state, path), 'utf8')
      .split('\n')
      .flatMap(line => {
        try {
          const value = JSON.parse(line)
          return 'type' in value ? [value] : []
        } catch {
          // It was torn.
          return []
        }
      }),
  )
}

function hasEndedDone(scene: TeamScene): boolean {
  const last = journalOf(scene).at(-1)
  return last?.type === 'session-ended' && last.outcome.kind === 'done'
}

function expectWhole(scene: TeamScene): void {
  const events = journalOf(scene)
  expect(eventsOf(events, 'session-ended').at(-1)).toMatchObject({ outcome: { kind: 'done' } })
  expect(scene.file('greet.sh')).toContain('Good day')
  expect(JSON.parse(scene.file('PROJECT_INFO.json'))).toMatchObject({
    plan: { steps: [{ id: 1 }, { id: 2 }, { id: 3 }] },
    review: { issues: [] },
    how_to_test: [{ for: 'runs ./start.sh' }],
  })
  expect(scene.runFile()).toMatchObject({ steps_executed: 4 })
  for (const line of scene.log()) expect(line).toMatch(/^\[\d{4}-\d\d-\d\dT[^\]]+\] \[[A-Z ]+\] /)
  expect(readdirSync(join(scene.place.directory, 'projects')).filter(name => !name.startsWith('.'))).toHaveLength(1)
  // What was finished is not done again: a round that was killed after its answer is none that was finished.
  const worked = new Set(
    eventsOf(events, 'round-ended').flatMap(({ round, outcome }) => (outcome.class === 'worked' ? [round] : [])),
  )
  for (const step of [1, 3, 4]) {
    const given = eventsOf(events, 'answer-given').filter(({ name }) => name === `step-${step}`)
    const rounds = new Set(given.map(({ round }) => round).filter(round => worked.has(round)))
    expect(rounds.size, `step ${step}`).toBe(1)
  }
  expect(scene.findLeaks(VALUE)).toEqual([])
}
