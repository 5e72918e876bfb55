import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect } from 'vitest'
import type { Recorded } from '../../../src/core/events/events.ts'
import { agentsScript } from '../../../src/demo/agents-script.ts'
import { reply, type ScriptStep, shell } from '../../../src/demo/model/reply.ts'
import { inTurn, makePart, openBuild, runAgent, smallBuild, UNATTENDED, WRITE_PLAN } from '../../support/build-scene.ts'
import { promise } from '../../support/promise.ts'
import { held, round, says } from '../../support/rounds.ts'
import { eventsOf, openScene, type Scene } from '../../support/scene.ts'
import { test } from '../../support/side-by-side.ts'

/** A scene in which something is done to files in the middle of each round, which then changes a file of its own. */
async function nightOf(person: string, during: readonly ((scene: Scene) => void)[]): Promise<Scene> {
  const opened: { scene: Scene | null } = { scene: null }
  const rounds = Array.from({ length: 8 }, (_, i): ScriptStep[] => [
    () => {
      if (opened.scene !== null) during[i]?.(opened.scene)
      return reply(shell(`echo ${i} > file-${i}`))
    },
    says('On it goes.'),
  ])
  opened.scene = await openScene(rounds, { person })
  return opened.scene
}

const configOf = ({ place }: Scene) => join(place.home, '.config/codemachine/config.toml')
const projectOf = ({ place }: Scene) => join(place.directory, 'codemachine.toml')
const person = (text: string) => (scene: Scene) => writeFileSync(configOf(scene), text)
const project = (text: string) => (scene: Scene) => writeFileSync(projectOf(scene), text)

const taken = (events: readonly Recorded[]) => eventsOf(events, 'settings-taken')
const warned = (events: readonly Recorded[], part: string) =>
  eventsOf(events, 'warning').filter(({ message }) => message.includes(part))
const roundsOf = (events: readonly Recorded[]) => eventsOf(events, 'round-ended').length

promise(
  'M23',
  "A limit that the person's file changes while a session runs counts from the next round on, and in the journal; one of the command line stays",
)
test("a limit that the person's file lowers ends the run at the next round, and is the session's from then on", async () => {
  await using scene = await nightOf('rounds = 5\n', [() => {}, person('max_wait = "1h"\nrounds = 2\n')])
  const { exitCode, events } = await scene.run('--json', 'a goal')
  expect([exitCode, roundsOf(events)]).toEqual([3, 2])
  expect(taken(events)).toMatchObject([
    {
      round: 3,
      changes: [
        { setting: 'rounds', from: '5', to: '2', place: `${configOf(scene)}:2` },
        { setting: 'max_wait', from: '24h', to: '1h', place: `${configOf(scene)}:1` },
      ],
      limits: { rounds: 2 },
      run: { limits: { rounds: 2 } },
    },
  ])
  const { stderr } = await scene.run('resume')
  expect(stderr).toContain('has used 2 of its 2 rounds')
  expect((await scene.run('logs')).stdout).toContain(`new settings: rounds is 2 (it was 5): ${configOf(scene)}:2`)
  expect((await scene.run('report', '--md')).stdout).toContain('New settings: rounds is 2 (it was 5)')
})

promise('M23')
test("a limit that the person's file raises gives the session and what waits behind it more", async () => {
  await using scene = await nightOf('rounds = 1\n', [person('rounds = 4\n')])
  await scene.run('queue', 'add', '--rounds', '1', 'another')
  const { events } = await scene.run('--json', 'a goal')
  expect(roundsOf(events)).toBe(4)
  expect(eventsOf(events, 'session-ended')).toHaveLength(1)
  expect(taken(events)).toMatchObject([{ round: 2, limits: { rounds: 4 }, run: { limits: { rounds: 4 } } }])
})

promise('M23')
test('a limit of the command line is no file’s to change, whatever it says', async () => {
  await using scene = await nightOf('rounds = 9\n', [person('rounds = 1\n'), person('rounds = 8\n')])
  const { events } = await scene.run('--json', '--rounds', '2', 'a goal')
  expect([roundsOf(events), taken(events)]).toEqual([2, []])
  expect(events[0]).toMatchObject({ said: { limits: ['rounds'] } })
})

promise('M23')
test('a limit of the command line stays when a session that was killed goes on without it', async () => {
  const opened: { scene: Scene | null } = { scene: null }
  const changing: ScriptStep = () => {
    if (opened.scene !== null) person('rounds = 1\nmax_wait = "1h"\n')(opened.scene)
    return reply(shell('echo b > b'))
  }
  const script = [round('echo a > a'), [held(new Promise(() => {})), ...round('true')], [changing, says('On.')]]
  opened.scene = await openScene([...script, round('echo c > c'), round('echo d > d')], { person: 'rounds = 9\n' })
  await using scene = opened.scene
  {
    await using running = scene.start('--json', '--rounds', '3', 'a goal')
    await running.event('item-completed', ({ item }) => item.kind === 'agent-message' && item.text === 'Working.')
  }
  const { exitCode, events } = await scene.run('resume', '--json')
  expect([exitCode, roundsOf(events)]).toEqual([3, 2])
  expect(taken(events)).toMatchObject([{ changes: [{ setting: 'max_wait' }], limits: { rounds: 3 } }])
  expect(taken(events)[0]?.changes).toHaveLength(1)
})

promise('M24', "A project's file raises and lifts no limit of a run that goes on, and changes no prompt of its")
test("a project's file lowers limits and raises none, which is said once; the one that it had stays if it goes", async () => {
  await using scene = await nightOf('max_tokens = "900M"\n', [
    project('rounds = 50\nmax_tokens = "9000M"\n'),
    project('rounds = 60\n'),
    project(''),
    project('rounds = 5\n'),
  ])
  await writeFile(projectOf(scene), 'rounds = 6\n')
  const { exitCode, events } = await scene.run('--json', 'a goal')
  expect([exitCode, roundsOf(events)]).toEqual([3, 5])
  expect(taken(events)).toMatchObject([
    { round: 5, changes: [{ setting: 'rounds', from: '6', to: '5', place: 'codemachine.toml:1' }] },
  ])
  const said = 'codemachine.toml would raise rounds, which it can only lower during a run; 6 stays.'
  expect(warned(events, 'would raise').map(({ message }) => message)).toEqual([said])
})

promise('M24')
test("a limit of a project's file that comes while a run goes on lifts no other", async () => {
  await using scene = await nightOf('', [project('max_time = "300d"\n')])
  const { events } = await scene.run('--json', '--config', 'x=1', 'a goal')
  expect(taken(events)).toMatchObject([
    { limits: { rounds: 10, timeMs: 300 * 24 * 3_600_000 }, run: { keepsUsual: true, limits: { rounds: null } } },
  ])
})

promise('M25', 'Of settings that are broken while a run goes on the last good ones count, which is said once')
test('settings that are broken for a while are said once, and what was read last counts', async () => {
  await using scene = await nightOf('rounds = 5\n', [
    person('rounds = [\n'),
    person('rounds = [\n\n'),
    scene => {
      project('rounds = "many"\n')(scene)
      person('rounds = 4\n')(scene)
    },
    project('rounds = "more"\n'),
  ])
  const { exitCode, events } = await scene.run('--json', 'a goal')
  expect([exitCode, roundsOf(events)]).toEqual([3, 4])
  expect(warned(events, 'Until you fix it, the session keeps its current settings.')).toHaveLength(1)
  // Before the round that goes on without them.
  const told = events.findIndex(event => warned([event], 'Until you fix it').length > 0)
  expect(eventsOf(events.slice(0, told), 'round-started')).toHaveLength(1)
  // Of the project's file alone, which keeps nothing of the person's from counting.
  expect(warned(events, 'Until you fix it, the earlier version applies.')).toHaveLength(2)
  expect(taken(events)).toMatchObject([{ round: 4, changes: [{ setting: 'rounds', from: '5', to: '4' }] }])
})

test('notifications go another way from the next round on, and no word of it is in the journal', async () => {
  const told = (scene: Scene) => join(scene.place.root, 'told')
  await using scene = await nightOf('rounds = 3\n', [
    scene =>
      person(
        `rounds = 3\n[notify]\ncommand = ["sh", "-c", "cat >> ${told(scene)}; echo hush >> ${told(scene)}"]\nevents = ["round-ended"]\n`,
      )(scene),
  ])
  const { events } = await scene.run('--json', 'a goal')
  expect(taken(events)).toMatchObject([
    {
      changes: [
        { setting: 'notify.command', from: null, to: null, place: `${configOf(scene)}:3` },
        { setting: 'notify.events', to: '["round-ended"]', place: `${configOf(scene)}:4` },
      ],
    },
  ])
  expect(JSON.stringify(events)).not.toContain('hush')
  expect(readFileSync(told(scene), 'utf8').match(/"event":"round-ended"/g)).toHaveLength(2)
})

test("an agent of the person's works by its new prompt from the next round on", async () => {
  const opened: { scene: Scene | null } = { scene: null }
  const scene = () => opened.scene as Scene
  const prompt = () => join(scene().place.home, '.config/codemachine/se.md')
  opened.scene = await openBuild(
    agentsScript({
      ...smallBuild(scene),
      'master-mind': inTurn(
        [
          reply(runAgent('security-expert', 'T1: make the back', ['back'])),
          () => {
            writeFileSync(prompt(), 'You look twice.\n')
            return reply(shell(WRITE_PLAN))
          },
          says('The back is there.'),
        ],
        [
          reply(runAgent('security-expert', 'T2: make the front', ['front'])),
          reply(shell(WRITE_PLAN)),
          says('All is there.'),
        ],
      ),
      'security-expert': inTurn(
        [makePart('back'), says('The back is made.')],
        [makePart('front'), says('The front is made.')],
      ),
    }),
  )
  await using _ = scene()
  await mkdir(join(scene().place.home, '.config/codemachine'), { recursive: true })
  await writeFile(configOf(scene()), '[agents.security-expert]\nprompt = "se.md"\n')
  await writeFile(prompt(), 'You look once.\n')
  const { exitCode, events } = await scene().run('start', ...UNATTENDED)
  expect(exitCode).toBe(0)
  expect(taken(events)).toMatchObject([
    { changes: [{ setting: 'agents.security-expert.prompt', from: expect.any(String), place: prompt() }] },
  ])
  const told = scene()
    .model.requests.filter(({ developerTexts }) => developerTexts.join().includes('.security-expert-memory.md'))
    .map(({ developerTexts }) => /You look (once|twice)\./.exec(developerTexts.join())?.[1])
  expect([...new Set(told)]).toEqual(['once', 'twice'])
})

promise('M24')
test("a project's file that has lowered a limit does not raise it again, not even to what the person's says", async () => {
  const raised = 'rounds = 6\nmax_wait = "6h"\n'
  await using scene = await nightOf('rounds = 9\nmax_wait = "9h"\n', [project(raised)])
  await writeFile(projectOf(scene), 'rounds = 3\nmax_wait = "3h"\n')
  const { events } = await scene.run('--json', 'a goal')
  expect([roundsOf(events), taken(events)]).toEqual([3, []])
  expect(warned(events, 'would raise').map(({ message }) => message)).toEqual([
    'codemachine.toml would raise rounds, which it can only lower during a run; 3 stays.',
    'codemachine.toml would raise max_wait, which it can only lower during a run; 3h stays.',
  ])
})

test("what the person's file raises a limit to is lowered by a project's file that was passed over before", async () => {
  await using scene = await nightOf('rounds = 2\n', [person('rounds = 9\n'), project('rounds = 5\n'), () => {}])
  await writeFile(projectOf(scene), 'rounds = 4\n')
  const { events } = await scene.run('--json', 'a goal')
  expect([roundsOf(events), taken(events)]).toMatchObject([
    4,
    [
      {
        changes: [{ setting: 'rounds', from: '2', to: '4', place: 'codemachine.toml:1' }],
        run: { limits: { rounds: 4 } },
      },
    ],
  ])
})

test("a person's file that is a link to another one is followed, too", async () => {
  const kept = ({ place }: Scene) => join(place.root, 'dotfiles.toml')
  await using scene = await nightOf('', [scene => writeFileSync(kept(scene), 'rounds = 2\n')])
  await writeFile(kept(scene), 'rounds = 4\n')
  await rm(configOf(scene))
  await symlink(kept(scene), configOf(scene))
  const { events } = await scene.run('--json', 'a goal')
  expect([roundsOf(events), taken(events)]).toMatchObject([2, [{ round: 2, limits: { rounds: 2 } }]])
})

test('a session that follows one for which the settings changed says so of what it begins with', async () => {
  await using scene = await nightOf('max_usage = 90\n', [person('max_usage = 80\n')])
  for (const prompt of ['one', 'two']) await scene.run('queue', 'add', '--rounds', '2', prompt)
  const { events } = await scene.run('queue', 'run', '--json')
  expect(taken(events)).toMatchObject([{ maxUsage: 80 }])
  expect(eventsOf(events, 'session-created').map(({ maxUsage }) => maxUsage)).toEqual([90, 80])
})

promise('M24')
test("a prompt of the person's that is written after it was named counts then; one of a project's agent stays as it was", async () => {
  const beside = (file: (scene: Scene) => string, name: string, text: string) => (scene: Scene) =>
    writeFileSync(join(dirname(file(scene)), name), text)
  const named = (prompt: string) => `rounds = 4\n[agents.auditor]\nprompt = "${prompt}"\n`
  await using scene = await nightOf(named('first.md'), [
    person(named('second.md')),
    beside(configOf, 'second.md', 'Count twice.\n'),
    beside(projectOf, 'translator.md', 'Do as I say.\n'),
  ])
  beside(configOf, 'first.md', 'Count once.\n')(scene)
  beside(projectOf, 'translator.md', 'Into German.\n')(scene)
  project('[agents.translator]\nprompt = "translator.md"\n')(scene)
  const { events } = await scene.run('--json', 'a goal')
  expect(roundsOf(events)).toBe(4)
  expect(warned(events, 'second.md; write it, or name another. Until you fix it,')).toHaveLength(1)
  expect(taken(events)).toMatchObject([
    { round: 3, changes: [{ setting: 'agents.auditor.prompt', place: join(dirname(configOf(scene)), 'second.md') }] },
  ])
})

test("a person's file that goes takes its limits along, and each session has its usual rounds again", async () => {
  await using scene = await nightOf('rounds = 3\nmax_tokens = "900M"\n', [
    scene => rmSync(configOf(scene)),
    () => {},
    () => {},
    project('rounds = 5\n'),
  ])
  const { events } = await scene.run('--json', 'a goal')
  expect(roundsOf(events)).toBe(5)
  expect(taken(events)).toMatchObject([
    {
      changes: [
        { setting: 'rounds', from: '3', to: null, place: configOf(scene) },
        { setting: 'max_tokens', from: '900M', to: null },
      ],
      limits: { rounds: 10, tokens: null },
    },
    { changes: [{ setting: 'rounds', from: null, to: '5' }], limits: { rounds: 5 } },
  ])
})

test('as many rounds as the default has count from when they are named, where another limit had lifted that', async () => {
  const tokens = 'max_tokens = "900M"\n'
  await using scene = await nightOf(tokens, [person(`${tokens}rounds = 10\n`), person(`${tokens}rounds = 2\n`)])
  const { events } = await scene.run('--json', 'a goal')
  expect([roundsOf(events), taken(events)]).toMatchObject([
    2,
    [
      { changes: [{ setting: 'rounds', from: null, to: '10' }], limits: { rounds: 10 } },
      { changes: [{ setting: 'rounds', from: '10', to: '2' }], limits: { rounds: 2 } },
    ],
  ])
})

promise('M24')
test("a project's file that was changed before a session goes on gives it no more than it had, however it changes then", async () => {
  const opened: { scene: Scene | null } = { scene: null }
  const changing = (text: string): ScriptStep => {
    return () => {
      if (opened.scene !== null) project(text)(opened.scene)
      return reply(shell('date +%N > now'))
    }
  }
  const killed = [changing('rounds = 8\n'), held(new Promise(() => {})), ...round('true')]
  const script = [
    round('echo a > a'),
    killed,
    [changing('rounds = 7\n'), says('On.')],
    round('echo c > c'),
    round('true'),
  ]
  opened.scene = await openScene(script)
  await using scene = opened.scene
  await writeFile(projectOf(scene), 'rounds = 3\n')
  {
    await using running = scene.start('--json', 'a goal')
    await running.event('item-completed', ({ item }) => item.kind === 'agent-message' && item.text === 'Working.')
  }
  const { events } = await scene.run('resume', '--json')
  expect([roundsOf(events), taken(events)]).toMatchObject([
    2,
    [{ changes: [{ setting: 'rounds', from: '8', to: '3' }], limits: { rounds: 3 } }],
  ])
})
