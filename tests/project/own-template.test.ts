import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import * as v from 'valibot'
import { expect, test } from 'vitest'
import type { ThreadSpec } from '../../src/core/engine.ts'
import { listTemplates } from '../../src/doors/cli/commands/dry-start.ts'
import { list, status } from '../../src/doors/cli/commands/look.ts'
import { report } from '../../src/doors/cli/commands/report.ts'
import type { CliContext } from '../../src/doors/screen/cli-context.ts'
import { OWN_ENGINES } from '../../src/engines/registry.ts'
import type { OpenOptions, TemplateKind } from '../../src/index.ts'
import { openProject, processWorld, UserError } from '../../src/index.ts'
import { OWN_TEMPLATES } from '../../src/modes/registry.ts'
import { findUnfinished } from '../../src/project/resume.ts'
import { resumableSessions } from '../../src/project/start/start-facts.ts'
import { openRecords } from '../../src/session/records/records.ts'
import { cliContext } from '../support/cli-context.ts'
import { makePlace } from '../support/place.ts'
import { openRealScene } from '../support/real-scene.ts'
import { relayTemplate } from '../support/relay-template.ts'
import { claimDone, round } from '../support/rounds.ts'
import { openScene, type Scene } from '../support/scene.ts'

function openIn({ place, engines = OWN_ENGINES }: Pick<Scene, 'place'> & Partial<Scene>, options: OpenOptions) {
  const world = processWorld({ engines, env: place.env, home: place.home, cwd: place.directory })
  return openProject(world, { keepAwake: false, ...options })
}

/** What a command of a codemachine that has this template prints. */
async function printed({ place }: Scene, kind: TemplateKind | null, command: (context: CliContext) => Promise<number>) {
  const stdout = new PassThrough()
  const templates = kind === null ? OWN_TEMPLATES : new Map([...OWN_TEMPLATES, [kind.name, kind]])
  const said = text(stdout)
  expect(await command(cliContext(place, { templates, stdout }))).toBe(0)
  stdout.end()
  return await said
}

test('a template of a program runs, is listed, shown and reported', async () => {
  const legs = [round('echo 1 > one.txt'), round('echo 2 > two.txt')]
  await using scene = await openScene([...legs, round(claimDone), round(claimDone)])
  const { open, ...kind } = relayTemplate()
  const atEnd: number[] = []
  const relay: TemplateKind = {
    ...(kind as TemplateKind),
    options: v.object({ pace: v.optional(v.string(), 'slow') }),
    open: async setup => ({
      ...(await open(setup)),
      beforeEnd: async ({ roundsUsed }) => {
        atEnd.push(roundsUsed)
        return null
      },
    }),
  }
  await using project = await openIn(scene, { templates: [relay] })
  const told: unknown[] = []
  const parts: (string | undefined)[] = []
  const { id, outcome, limits } = await project.run('Carry it.\nto the bridge\nhome', {
    template: 'relay',
    onEvent(event) {
      if (event.type === 'round-started') parts.push(event.part)
      if (event.type === 'session-created') told.push(event.options)
    },
  })
  expect(outcome).toEqual({ kind: 'done', verified: false })
  expect([told, atEnd]).toEqual([[{ pace: 'slow' }], [3]])
  expect(parts.slice(0, 3)).toEqual(['leg', 'leg', 'finish'])
  expect(limits.rounds).toBe(9)
  expect(await project.report()).toMatchObject({
    session: id,
    template: 'relay',
    build: null,
    work: { status: 'leg 2 of 2', section: { title: 'The relay', text: 'to the bridge\nhome' }, board: { count: 2 } },
  })
  const { session } = JSON.parse(await printed(scene, relay, context => status(context, { json: true })))
  expect(session.work).toEqual({
    template: 'relay',
    isKnown: true,
    status: 'leg 2 of 2',
    round: null,
    board: {
      from: 'template',
      count: 2,
      rows: [
        { mark: 'done', id: 'L1', text: 'to the bridge', who: null, since: null },
        { mark: 'done', id: 'L2', text: 'home', who: null, since: null },
      ],
    },
  })
  expect(await printed(scene, relay, context => status(context, {}))).toContain('  work     leg 2 of 2\n')
  expect(await printed(scene, relay, context => report(context, undefined, {}))).toContain('baton    carried 2 times')
  expect(JSON.parse(await printed(scene, relay, context => listTemplates(context, { json: true })))).toContainEqual({
    name: 'relay',
    description: 'one leg after the other',
    command: 'node relay.js',
    chosen: false,
  })
  // A codemachine that does not have it lists, shows and reports the session all the same.
  expect(await printed(scene, null, context => list(context, {}))).toContain('Carry it.')
  expect(await printed(scene, null, context => status(context, {}))).toContain('state    done')
  expect(await printed(scene, null, context => report(context, undefined, {}))).not.toContain('baton')
})

test('a template that cannot be used is refused when the project is opened', async () => {
  await using place = await makePlace('', { git: false })
  const kind = relayTemplate()
  const refusal = (template: object) =>
    openIn({ place }, { templates: [template as TemplateKind] }).catch((error: unknown) => error)
  const cases: [object, RegExp][] = [
    [{ ...kind, name: 'goal' }, /Another template is already named "goal"/],
    [{ ...kind, name: '../x' }, /"\.\.\/x" is not a valid name/],
    [{ ...kind, name: 7 }, /"7" is not a valid name/],
    [{ ...kind, open: undefined }, /"relay" has no function "open"/],
    [{ ...kind, defaultRounds: 9 }, /"relay" has no function "defaultRounds"/],
    [{ ...kind, parts: null }, /"relay" has no "parts"/],
    [{ ...kind, parts: undefined }, /"relay" has no "parts"/],
  ]
  for (const [template, sentence] of cases) {
    const refused = await refusal(template)
    expect(refused).toBeInstanceOf(UserError)
    expect(refused).toMatchObject({ message: expect.stringMatching(sentence), exitCode: 2 })
  }
  const twice = await openIn({ place }, { templates: [kind, kind] }).catch((error: unknown) => error)
  expect(twice).toMatchObject({ message: expect.stringContaining('already named "relay"') })
})

test('a session whose template throws is listed with why, what waits is worked on, and it goes on once that is mended', async () => {
  await using scene = await openScene(Array(6).fill(round(claimDone)))
  const { place } = scene
  const relay = relayTemplate()
  const broken: TemplateKind = {
    ...relay,
    fold(own, event) {
      if (event.type === 'round-ended') throw new Error('the baton fell')
      return own as ReturnType<typeof relay.fold>
    },
  }
  const templates = new Map([...OWN_TEMPLATES, [broken.name, broken]])
  const sentence = `the template "relay" failed in \`fold\`: the baton fell`
  {
    await using project = await openIn(scene, { templates: [broken] })
    await expect(project.run('Carry it.', { template: 'relay' })).rejects.toThrow(sentence)
  }
  const stderr = new PassThrough()
  const records = await openRecords({ ...place, platform: process.platform, templates })
  const [id = ''] = await records.sessions()
  const problem = `${id} cannot continue until its template is fixed: ${sentence}.`
  expect(await printed(scene, broken, context => list({ ...context, stderr }, {}))).toContain('Carry it.')
  expect(stderr.read().toString()).toBe(`codemachine: ${problem}\n`)
  const problems: string[] = []
  const context = cliContext(place, { templates })
  expect(await findUnfinished(context, records, each => problems.push(each))).toBe(null)
  expect(await resumableSessions(records, process.platform)).toEqual([])
  expect(problems).toEqual([problem])
  await using project = await openIn(scene, { templates: [broken] })
  await project.queue.add('goal two')
  await expect(project.run('goal four', { follows: id })).rejects.toThrow(new UserError('CM0607', problem))
  const other = await project.run('goal three')
  expect(other.outcome.kind).toBe('done')
  await using mended = await openIn(scene, { templates: [relay] })
  expect(await mended.resume(id)).toMatchObject({ id, outcome: { kind: 'done' } })
})

test.each([
  ['a text at any depth', { to: { host: 'hunter2-of-the-db' } }],
  ['the name of a key', { 'hunter2-of-the-db': true }],
])('options with a secret in %s are refused before anything is begun, and name its variable', async (_, options) => {
  await using place = await makePlace('', { git: false })
  const env = { ...place.env, DB_PASSWORD: 'hunter2-of-the-db' }
  const kind = { ...relayTemplate(), options: v.record(v.string(), v.unknown()) }
  await using project = await openIn({ place: { ...place, env } }, { templates: [kind] })
  const terms = { template: 'relay', options }
  const sentence =
    'The options of the template relay contain a secret (DB_PASSWORD), which codemachine never stores; remove it.'
  await expect(project.queue.add('Carry it.', terms)).rejects.toThrow(sentence)
  await expect(project.run('Carry it.', terms)).rejects.toThrow(sentence)
  const templates = new Map([...OWN_TEMPLATES, [kind.name, kind]])
  const records = await openRecords({ ...place, platform: process.platform, templates })
  expect(await records.sessions()).toEqual([])
})

test('the empty file that codex leaves in the place of a missing one that is not to be read is no work of the agent', async () => {
  const legs = [round('echo 1 > one.txt'), round('echo 2 > two.txt')]
  await using scene = await openRealScene([...legs, round(claimDone)])
  const { open, ...kind } = relayTemplate()
  const path = join(scene.place.directory, '.env')
  const hiding = <T extends ThreadSpec>(thread: T): T => ({ ...thread, unreadable: [path] })
  const relay: TemplateKind = {
    ...(kind as TemplateKind),
    async open(setup) {
      const template = await open(setup)
      return {
        ...template,
        threads: template.threads.map(each => ({ ...each, thread: hiding(each.thread) })),
        next(session, memory) {
          const step = template.next(session, memory)
          return step.kind === 'round' ? { ...step, round: { ...step.round, thread: hiding(step.round.thread) } } : step
        },
        ahead: () => null,
      }
    },
  }
  await using project = await openIn(scene, { templates: [relay] })
  const changed: (readonly string[])[] = []
  const { outcome } = await project.run('Carry it.\nto the bridge\nhome', {
    template: 'relay',
    onEvent(event) {
      // Codex itself does so in about half of the rounds.
      if (event.type === 'item-completed' && event.item.kind === 'command' && !existsSync(path))
        writeFileSync(path, '', { mode: 0o444 })
      if (event.type === 'round-ended') changed.push(event.changed)
    },
  })
  expect(outcome).toMatchObject({ kind: 'done' })
  expect(changed).toEqual([['one.txt'], ['two.txt'], []])
  expect(existsSync(path)).toBe(false)
})
