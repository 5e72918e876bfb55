import { chmod, mkdir, readdir, readFile, realpath, symlink, truncate, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { loadAgents } from '../../../src/agents/agent.ts'
import { UserError } from '../../../src/base/errors.ts'
import type { Agent } from '../../../src/core/shapes/agent.ts'
import { runCommandLine } from '../../../src/doors/cli/entry.ts'
import type { CliContext } from '../../../src/doors/screen/cli-context.ts'
import { buildKind } from '../../../src/modes/from-specification/build.ts'
import { goalKind } from '../../../src/modes/goal/goal.ts'
import { specificationOf } from '../../../src/project/start/dry-run.ts'
import { specificationFile } from '../../../src/workspace/memory/plan-files.ts'
import { startInEmulator } from '../../support/emulator.ts'
import { openRealScene } from '../../support/real-scene.ts'
import { claimDone, round } from '../../support/rounds.ts'
import { openScene } from '../../support/scene.ts'
import { sampleEvents } from '../screen/samples.ts'
import { makePlace, type Place } from './place.ts'

/** What was said, without the work directory's path. */
async function refusal(place: Place, ...args: string[]): Promise<string> {
  const error: unknown = await runCommandLine(place.context, args).catch((thrown: unknown) => thrown)
  if (!(error instanceof UserError)) throw new Error(`not refused: ${String(error)}`)
  expect(error.exitCode).toBe(2)
  return error.message.replaceAll(await realpath(place.directory), '')
}

async function specify(place: Pick<Place, 'directory'>, text: string | Buffer): Promise<string> {
  const path = join(place.directory, specificationFile)
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, text)
  return path
}

/** A login that is codemachine's own: the agents have profiles there. */
async function logIn({ records }: Place): Promise<void> {
  await mkdir(join(records.root, 'codex'))
  await writeFile(join(records.root, 'codex', 'auth.json'), '{}')
}

/** A codex that only says its version, and notes with what it was called. */
async function noteCodex({ directory, context }: Place): Promise<{ calls(): Promise<string> }> {
  const [path, notes] = [join(dirname(directory), 'codex'), join(dirname(directory), 'calls')]
  await writeFile(path, `#!/bin/sh\necho "$@" >> '${notes}'\necho codex-cli 0.169.0\n`)
  await chmod(path, 0o755)
  context.env.CODEX_BIN = path
  return { calls: () => readFile(notes, 'utf8') }
}

test('a directory in which nothing is specified gets a guide, and a pointer to it', async () => {
  await using place = await makePlace()
  const sentence = `/${specificationFile} says nothing yet: it is still the guide, or has headings only; write a description of the thing to build into it.`
  expect(await refusal(place, 'start', '--yes')).toBe(sentence)
  expect(await readdir(join(place.directory, '.codemachine'))).toEqual(
    expect.arrayContaining(['agents', 'inputs', 'memory', 'plan']),
  )
  expect(await readdir(join(place.directory, '.codemachine/agents'))).toEqual(['agents-config.json'])
  expect(await refusal(place, 'start')).toBe(sentence)
})

test('a build is refused before anything is spent where an agent has no prompt, unless the project has one for it', async () => {
  await using place = await makePlace()
  await specify(place, 'A game.')
  const { main, sub, goal } = loadAgents()
  const lost = (each: Agent) => ({ ...each, promptPath: 'prompts/nope.md' })
  const without = (name: string) => ({ main, goal, sub: sub.map(each => (each.name === name ? lost(each) : each)) })
  const agents = without('qa-engineer')
  const refused = 'The prompt of qa-engineer is missing: there is no file '
  await expect(specificationOf(place.directory, buildKind, agents)).rejects.toThrow(refused)
  const [first, ...others] = main
  if (first === undefined) throw new Error('There are no main agents.')
  await expect(
    specificationOf(place.directory, buildKind, { main: [lost(first), ...others], goal, sub }),
  ).rejects.toThrow(`The prompt of ${first.name} is missing`)
  expect(await specificationOf(place.directory, goalKind, agents)).toMatchObject({ title: 'A game.' })
  await writeFile(join(place.directory, '.codemachine/agents/qa-engineer.md'), 'You test the game.')
  expect(await specificationOf(place.directory, buildKind, agents)).toMatchObject({ title: 'A game.' })
})

test('what is missing after a command is said, and what it is', async () => {
  await using place = await makePlace()
  const said = async (...args: string[]) => {
    const stderr = new PassThrough({ encoding: 'utf8' })
    expect(await runCommandLine({ ...place.context, stderr }, args)).toBe(2)
    return stderr.read()
  }
  expect(await said('rewind')).toBe(
    'codemachine: codemachine rewind needs <savepoint>: a savepoint, such as 3 (after round 3), 20261121_1/3 or start. (CM0104)\n',
  )
  expect(await said('questions', 'answer', 'Q1')).toBe(
    'codemachine: codemachine questions answer needs <answer...>: the answer, or the number of an option; - reads it from standard input. (CM0104)\n',
  )
})

test('a specification that cannot be built by is refused before anything is asked', async () => {
  await using place = await makePlace()
  const path = await specify(place, 'A game.')
  await truncate(path, 5_000_000)
  expect(await refusal(place, 'start')).toContain('has 5000000 bytes, but at most 524288 (512 KiB) are allowed')
  await specify(place, Buffer.from([0x41, 0]))
  expect(await refusal(place, 'start', '--yes')).toContain('byte 2 is a NUL')
  await specify(place, '')
  expect(await refusal(place, 'start', '--dry-run')).toContain('is empty')
  expect(await refusal(place, 'start', '--template', 'bild')).toBe('There is no template "bild"; did you mean "build"?')
})

test('where nobody can be asked, only --yes says that the specification is complete', async () => {
  await using place = await makePlace()
  await specify(place, 'A game.')
  const sentence = 'Without a terminal, you cannot confirm that the specification is complete; use --yes.'
  expect(await refusal(place, 'start')).toBe(sentence)
  expect(await refusal(place, 'start', '--json')).toBe(sentence)
})

test('a session that was left in the middle is named before another one is started', async () => {
  await using place = await makePlace()
  await specify(place, 'A game.')
  await place.journal('20261121_1', [{ ...sampleEvents['session-created'], goal: 'Build a house' }])
  const stderr = new PassThrough()
  const thrown = runCommandLine({ ...place.context, stderr }, ['start'])
  await expect(thrown).rejects.toThrow('use --yes')
  expect(String(stderr.read())).toMatch(
    /^20261121_1 was cut off .*: "Build a house" \(0 rounds\)\. This starts a new session. To resume that one: codemachine resume 20261121_1\n$/,
  )
})

test.each([
  ['no', 'n\n'],
  ['nothing', ''],
])('a person who says %s has nothing started, and has seen what the agents would know', async (_, answer) => {
  await using place = await makePlace()
  const path = await specify(place, '# A game\n\nFor two.\n')
  await writeFile(join(dirname(path), 'rules.md'), 'x'.repeat(3000))
  const stdin = Object.assign(new PassThrough(), { isTTY: true })
  stdin.end(answer)
  const context: CliContext = { ...place.context, stdin, stdout: Object.assign(place.context.stdout, { isTTY: true }) }
  expect(await runCommandLine(context, ['start', '--plain'])).toBe(0)
  expect(place.written()).toContain(`${specificationFile}, 19 bytes: A game\n  beside it rules.md, 2 KiB\n`)
  expect(place.written()).toContain('Is this all that the agents need to know? [Y/n]')
  expect(place.written()).toContain(`Nothing starts. Add the missing parts to ${await realpath(path)}`)
  expect(await place.records.sessions()).toEqual([])
})

test('a dry run prints the prompts of every agent, starts only codex --version, and writes nothing', async () => {
  await using place = await makePlace()
  const codex = await noteCodex(place)
  await logIn(place)
  await specify(place, 'A game for {{two}}, $HOME.')
  const own = join(place.directory, '.codemachine/agents')
  await mkdir(own)
  await writeFile(join(own, 'qa-engineer.md'), 'You are the one who tries \u001b[31mthe game.')
  const before = await readdir(join(place.directory, '.codemachine'), { recursive: true })
  expect(await runCommandLine(place.context, ['start', '--dry-run', '--yolo', '--effort', 'low'])).toBe(0)
  const shown = place.written()
  expect(shown).toContain('A game for {{two}}, $HOME.')
  for (const title of ['agents-builder', 'master-mind', 'project-summarizer']) {
    expect(shown).toContain(`developer instructions of ${title} (`)
  }
  expect([...shown.matchAll(/^─── ([\w-]+) \(.*prompt/gm)].map(([, agent]) => agent)).toEqual([
    'uxui-designer',
    'frontend-dev',
    'backend-dev',
    'solution-architect',
    'software-architect',
    'technical-writer',
    'qa-engineer',
    'performance-engineer',
  ])
  expect(shown.match(/\nUser Request:\n/g)).toHaveLength(8)
  expect(shown).toContain("qa-engineer (gpt-5-codex, effort low): the project's own prompt")
  expect(shown).toContain('You are the one who tries ␛[31mthe game.')
  expect(await codex.calls()).toBe('--version\n')
  expect(await readdir(join(place.directory, '.codemachine'), { recursive: true })).toEqual(before)
  expect(await readdir(place.directory)).toEqual(['.codemachine'])
})

test('a dry run names the model, effort and prompt of each agent in JSON', async () => {
  await using place = await makePlace()
  await noteCodex(place)
  await specify(place, 'A game.')
  await runCommandLine(place.context, ['start', '--dry-run', '--json', '-m', 'gpt-x'])
  const { agents } = JSON.parse(place.written())
  expect(agents[1]).toMatchObject({ agent: 'frontend-dev', model: 'gpt-x', effort: 'medium', from: 'shipped' })
  expect(agents[1].prompt).toContain('\nUser Request:\n')
})

test('a dry run is JSON too, and of the template that is chosen', async () => {
  await using place = await makePlace()
  await noteCodex(place)
  await specify(place, 'A game.')
  await runCommandLine(place.context, ['start', '--dry-run', '--json', '--template', 'goal'])
  expect(JSON.parse(place.written())).toMatchObject({
    template: 'goal',
    goal: `Build A game, as ${specificationFile} says.\n\nA game.`,
    rounds: [{ part: null, agent: 'goal-worker' }],
    agents: [],
  })
})

test('a dry run in which a prompt cannot be used says which', async () => {
  await using place = await makePlace()
  await noteCodex(place)
  await specify(place, 'A game.')
  await mkdir(join(place.directory, '.codemachine/agents'))
  await symlink('/etc/hostname', join(place.directory, '.codemachine/agents/qa-engineer.md'))
  expect(await refusal(place, 'start', '-n')).toContain('.codemachine/agents/qa-engineer.md')
  expect(await refusal(place, 'start', '-n', '--worktree')).toContain('leave --worktree out')
})

test('with --yes the specification is the goal of a session, of the template that is asked for', async () => {
  await using scene = await openScene([round(claimDone), round(claimDone)])
  await specify(scene.place, 'A game.\n')
  const args = ['start', '--yes', '--template', 'goal', '--json', '--no-keep-awake']
  const { exitCode, events } = await scene.run(...args)
  expect(exitCode).toBe(0)
  expect(events.find(({ type }) => type === 'session-created')).toMatchObject({
    template: 'goal',
    goal: `Build A game, as ${specificationFile} says.\n\nA game.`,
    limits: { rounds: 10 },
  })
})

test('on a terminal a person is asked first, and then the session has the screen', async () => {
  await using scene = await openRealScene([round(claimDone), round(claimDone)])
  await specify(scene.place, '# A game\n\nFor two.\n')
  await using terminal = startInEmulator(scene.place, ['start', '--template', 'goal'], { columns: 100, rows: 40 })
  await terminal.until('A game')
  await terminal.until('Is this all that the agents need to know? [Y/n]')
  terminal.press('enter')
  await terminal.untilInAll('_1 ended ─')
  expect(await terminal.ended).toEqual({ exitCode: 0 })
})

test('on the screen /templates chooses what /start starts, once a person says that the specification is complete', async () => {
  await using scene = await openRealScene([round(claimDone), round(claimDone)])
  await using terminal = startInEmulator(scene.place, [], { columns: 100, rows: 40 })
  const type = async (text: string) => {
    terminal.type(text)
    await terminal.until(`› ${text}`)
    terminal.press('enter')
  }
  await terminal.until('Type a goal')
  await type('/start')
  await terminal.until('still the guide')
  // It is written beside what the screen does.
  const agents = join(scene.place.directory, '.codemachine/agents')
  await expect.poll(() => readdir(agents).catch(() => []), { timeout: 20_000 }).toEqual(['agents-config.json'])
  await type('/start goal please')
  await terminal.until('does not accept "please"')
  await specify(scene.place, '# A game\n\nFor two.\n')
  await type('/templates goal')
  await terminal.until('codemachine.toml says so now')
  await terminal.until(/\/start +starts a goal/)
  await type('/start')
  await terminal.until('Is this all that the agents need to know?')
  await terminal.until('A game')
  terminal.press('down')
  terminal.press('enter')
  await terminal.until('Nothing starts.')
  await type('/start --yes')
  await terminal.untilInAll('_1 ended ─')
  await terminal.until('Type a goal')
  await type('/exit')
  expect(await terminal.ended).toEqual({ exitCode: 0 })
  expect(await readFile(join(scene.place.directory, 'codemachine.toml'), 'utf8')).toMatch(
    /^#:schema .*\nmode = "goal"\n$/,
  )
})
