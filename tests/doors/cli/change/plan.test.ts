import { execFileSync } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Decision } from '../../../../src/core/rules/decision.ts'
import type { TemplateKind, TemplateKinds } from '../../../../src/core/template.ts'
import type { ShownPlan } from '../../../../src/core/view.ts'
import { plan } from '../../../../src/doors/cli/change/plan.ts'
import { openProject, processWorld, type RecordedOf } from '../../../../src/index.ts'
import { cliContext } from '../../../support/cli-context.ts'
import { codemachineHere } from '../../../support/in-process.ts'
import { makePlace, type TestPlace } from '../../../support/place.ts'
import { promise } from '../../../support/promise.ts'
import { openRealScene } from '../../../support/real-scene.ts'
import { openScene } from '../../../support/scene.ts'
import { type ToyState, withToy } from '../../../toy-template/toy.ts'

const FILE = '.codemachine/plan.md'

const ASKED: Decision = {
  id: 'plan',
  title: 'May this plan be carried out?',
  body: '',
  choices: [
    { id: 'accept', label: 'Carry it out', text: 'may' },
    { id: 'change', label: 'Have it changed', text: 'must' },
    { id: 'edit', label: 'Change it myself', opensFile: true },
    { id: 'stop', label: 'Stop' },
  ],
  default: null,
  file: FILE,
}

/** A template that asks twice whether its plan may be carried out, and has one version more after each answer. */
function planning(): TemplateKinds {
  const templates = withToy({
    steps: [
      { kind: 'decide', decision: ASKED },
      { kind: 'decide', decision: ASKED },
      { kind: 'decide', decision: { ...ASKED, id: 'weather' } },
    ],
  })
  const toy = templates.get('toy') as TemplateKind<ToyState>
  const plans = ({ taken, decided }: ToyState): ShownPlan[] =>
    [1, 2].slice(0, taken + 1).map(version => ({
      version,
      author: 'planner',
      feedback: version === 1 ? null : 'another way\u001b[31m',
      sha256: `hash${version}`,
      text: `# Plan ${version}\n\nDo it.\u001b[31m\n`,
      diff: version === 1 ? null : '-# Plan 1\n+# Plan 2\n',
      accepted: version === taken && decided?.choice === 'accept' ? { by: 'person', remark: 'gladly' } : null,
    }))
  return new Map([...templates, ['toy', { ...toy, view: { plans } } as TemplateKind]])
}

/** A session that waits with the first version of its plan, and what a person types about it. */
async function openWaiting() {
  const scene = await openRealScene([])
  const { place } = scene
  const templates = planning()
  await mkdir(join(place.directory, '.codemachine'), { recursive: true })
  await writeFile(join(place.directory, FILE), 'a plan\n')
  const world = processWorld({ env: place.env, home: place.home, cwd: place.directory, templates })
  const project = await openProject(world, { keepAwake: false })
  const asked: PromiseWithResolvers<RecordedOf<'decision-asked'>>[] = [1, 2, 3].map(() => Promise.withResolvers())
  let count = 0
  const running = project.run('Plan it.', {
    template: 'toy',
    canAsk: true,
    onEvent: event => void (event.type === 'decision-asked' && asked[count++]?.resolve(event)),
  })
  const types = async (words: readonly string[], flags = {}, isTTY = false) => {
    const stdin = Object.assign(new PassThrough(), { isTTY })
    const stdout = Object.assign(new PassThrough(), { isTTY })
    const editor = join(place.root, 'editor')
    const context = cliContext(place, {
      env: { ...place.env, VISUAL: editor, EDITOR: editor },
      templates,
      stdin,
      stdout,
    })
    const error = await plan(context, words, flags).then(
      () => null,
      (thrown: Error) => thrown.message,
    )
    return error ?? String(stdout.read())
  }
  const askedFor = async (at: number) => (await asked[at - 1]?.promise)?.session ?? ''
  return {
    place,
    types,
    askedFor,
    [Symbol.asyncDispose]: async () => {
      await project[Symbol.asyncDispose]()
      await running
      await scene[Symbol.asyncDispose]()
    },
  }
}

promise('C70')
promise(
  'C71',
  'An answer to a plan where none waits, a second one, one to another version than it names (`--version`), and one to a session that nobody runs are refused in a sentence with what to type instead',
)
test('a person sees the plan that waits, has it changed, and accepts what comes of that, from another terminal', async () => {
  await using waiting = await openWaiting()
  const { types, askedFor } = waiting
  const id = await askedFor(1)
  const first = await types([])
  expect(first).toContain(`${id}: plan version 1 of 1, by the planner; it waits for you\n\n# Plan 1\n\nDo it.␛[31m\n\n`)
  expect(first).toContain(
    '  codemachine plan accept --version 1 ["remark"]\n  codemachine plan reject --version 1 "what to change"\n',
  )
  expect(first).toContain('  codemachine plan edit\n  codemachine decide stop\n')
  expect(await types(['show', 'it'])).toContain('takes no text')
  expect(await types(['reject'])).toBe('Say what to change: codemachine plan reject "what to change"')
  expect(await types(['show'], { diff: true })).toBe(
    `Version 1 is the first plan of ${id}, so codemachine cannot compare it with an earlier one.`,
  )

  expect(await types(['reject', 'another', 'way'], { json: true })).toContain('"code":"done"')
  await askedFor(2)
  const second = await types(['show', id.slice(-1)], { diff: true })
  expect(second).toContain(
    `${id}: plan version 2 of 2, by the planner; it waits for you\nasked for: another way␛[31m\n\n-# Plan 1`,
  )
  expect(await types(['show'], { version: '1' })).not.toContain('To answer')
  expect(await types(['show'], { version: '3' })).toBe(`${id} has no version 3 of its plan; there are 1 to 2.`)
  expect(await types(['show'], { version: 'two' })).toBe('--version takes the number of a version, not "two".')
  expect(JSON.parse(await types(['show'], { json: true, version: 'v1' }))).toMatchObject({
    session: id,
    standing: 'running',
    waits: true,
    versions: [{ version: 1 }, { version: 2, feedback: 'another way\u001b[31m' }],
    plan: { version: 1, text: '# Plan 1\n\nDo it.\u001b[31m\n', diff: null },
  })

  const other = `Version 2 of the plan of ${id} waits, and not version 1.`
  expect(await types(['accept', 'gladly'], { version: '1' })).toBe(other)
  expect(await types([id, 'reject', 'not so'], { version: 'v1' })).toBe(other)
  expect(await types(['accept'], { version: 'one' })).toBe('--version takes the number of a version, not "one".')
  expect(await types(['accept'], { version: '' })).toBe('--version takes the number of a version, not "".')
  expect(await types(['edit'], { version: '2' })).toBe(
    '--version works only with: codemachine plan show, accept, reject',
  )
  expect(await types([id, 'accept', 'gladly'], { version: '2' })).toBe(`${id} continues.\n`)
  await askedFor(3)
  expect(await types(['show'])).toContain(
    'plan version 2 of 2, by the planner; accepted by a person: gladly\nasked for:',
  )
  expect(await types(['accept'])).toBe(`Version 2 of the plan of ${id} has been accepted already.`)
  expect(await types(['accept'], { version: '2' })).toBe(`Version 2 of the plan of ${id} has been accepted already.`)
  expect(await types(['accept', '20200101_1'])).toContain('There is no session "20200101_1"')
  expect(await types(['accept'], { diff: true })).toBe('--diff works only with: codemachine plan show')
  expect(await types(['decline'])).toBe(
    '"plan decline" is not a command; after plan, use one of show, accept, reject, edit.',
  )
})

test('the file of the plan is opened in the editor of a person at a terminal, before the session is told', async () => {
  await using waiting = await openWaiting()
  const { place, types, askedFor } = waiting
  const id = await askedFor(1)
  await writeFile(join(place.root, 'editor'), '#!/bin/sh\necho "and more" >> "$1"\n', { mode: 0o700 })
  expect(await types(['edit'], {}, true)).toBe(`${id} reads the file now; codemachine plan shows the result.\n`)
  expect(await readFile(join(place.directory, FILE), 'utf8')).toBe('a plan\nand more\n')
  await askedFor(2)
  expect(await types(['edit', id])).toBe(`${id} reads the file now; codemachine plan shows the result.\n`)
  expect(await readFile(join(place.directory, FILE), 'utf8')).toBe('a plan\nand more\n')
  await askedFor(3)
  expect(await types(['accept'])).toMatch(
    new RegExp(`^No plan of ${id} waits now: it was answered with "edit", and the result is not there yet`),
  )
})

test('an edit of a version that is another one by the time that it is saved is not taken, and is said where it lies', async () => {
  await using waiting = await openWaiting()
  const { place, types, askedFor } = waiting
  const id = await askedFor(1)
  const [open, saved] = [join(place.root, 'open'), join(place.root, 'saved')]
  execFileSync('mkfifo', [open, saved])
  await writeFile(
    join(place.root, 'editor'),
    `#!/bin/sh\necho > '${open}'\ncat '${saved}' > /dev/null\necho "and more" >> "$1"\n`,
    { mode: 0o700 },
  )
  const editing = types(['edit'], {}, true)
  await readFile(open)
  expect(await types(['reject', 'another', 'way'], { json: true })).toContain('"code":"done"')
  await askedFor(2)
  await writeFile(saved, 'now')
  expect(await editing).toBe(`Version 2 of the plan of ${id} waits, and not version 1. Your text is saved in ${FILE}.`)
  expect(await readFile(join(place.directory, FILE), 'utf8')).toBe('a plan\nand more\n')
  await writeFile(join(place.root, 'editor'), '#!/bin/sh\n', { mode: 0o700 })
  expect(await types(['edit'], {}, true)).toBe(`${id} reads the file now; codemachine plan shows the result.\n`)
})

promise('C71')
test('a plan of a session that nobody runs any more is answered once that goes on, and can be read until then', async () => {
  await using scene = await openScene([])
  const { place } = scene
  const templates = planning()
  const world = processWorld({ env: place.env, home: place.home, cwd: place.directory, templates })
  await using project = await openProject(world, { keepAwake: false })
  const ending = new AbortController()
  const { id } = await project.run('Plan it.', {
    template: 'toy',
    canAsk: true,
    signal: ending.signal,
    onEvent: event => void (event.type === 'decision-asked' && ending.abort('SIGTERM')),
  })
  const { id: later } = await project.run('Nothing.', { template: 'toy', signal: AbortSignal.abort('SIGTERM') })
  const stdout = new PassThrough()
  const context = cliContext(place, { templates, stdout })
  await expect(plan(context, [id, 'accept'], {})).rejects.toMatchObject({
    message: `${id} is not running, so you cannot answer its plan now; it asks you again when you resume it.`,
    hint: `To continue: codemachine resume ${id}`,
    exitCode: 2,
  })
  expect(await plan(context, ['show', id], {})).toBe(0)
  expect(String(stdout.read())).toContain(`${id}: plan version 1 of 1, by the planner\n\n# Plan 1`)
  expect(later).not.toBe(id)
})

let place: TestPlace
beforeAll(async () => {
  place = await makePlace('', { git: false })
})
afterAll(() => place[Symbol.asyncDispose]())

promise('C71')
test.each([
  [['plan', 'accept'], 'so no plan waits there.'],
  [['plan', 'show'], 'There is no plan in '],
  [['plan'], 'There is no plan in '],
  [['plan', '20260101_1', 'accept'], 'No sessions in '],
  [['plan', '20260101_1', 'accept', '--version', '2'], 'No sessions in '],
  [['plan', 'reject', 'x', '--version', 'two'], '--version takes the number of a version, not "two".'],
  [
    ['plan', '20260101_1', 'edit', '--version', '2'],
    '--version works only with: codemachine plan show, accept, reject',
  ],
  [['plan', 'reject'], 'codemachine plan reject needs <change...>: what to change'],
  [['plan', 'abandon'], '"plan abandon" is not a command; after plan, use one of show, accept, reject, edit.'],
])('where there is no plan, %j is refused in a sentence', async (words, problem) => {
  const { exitCode, stderr, stdout } = await codemachineHere(place, words)
  expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
  expect(stderr).toContain(problem)
})
