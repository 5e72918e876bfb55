import { execFileSync } from 'node:child_process'
import { existsSync, lstatSync } from 'node:fs'
import { mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { expect, test } from 'vitest'
import type { UserError } from '../../../src/base/errors.ts'
import { type Engine, Engines } from '../../../src/core/engine.ts'
import { newTeam, type WantedTeam } from '../../../src/modes/team/start/begin.ts'
import { slugOf } from '../../../src/modes/team/start/places.ts'
import type { Run } from '../../../src/project/open-run.ts'
import { openRecords } from '../../../src/session/records/records.ts'
import { cliContext } from '../../support/cli-context.ts'
import { git, makePlace, type TestPlace } from '../../support/place.ts'
import { promise } from '../../support/promise.ts'

/** A run without engines of another maker, as far as a team looks at one. */
const RUN = {
  engines: new Engines({ codex: {} as Engine }),
  settings: { team: { plannerEngine: null, workerEngine: null, reviewerEngine: null } },
} as unknown as Run

const AT = new Date(2026, 10, 21, 23, 40, 7)
const WHOLE: WantedTeam = {
  goal: 'A FastAPI service',
  mode: 'all',
  step: null,
  stepwise: false,
  engines: {},
  repair: undefined,
  yes: false,
  project: null,
}

function begin(place: TestPlace, wanted: Partial<WantedTeam> = {}, workspace = place.directory) {
  const context = cliContext(place)
  const clock = { ...context.clock, now: () => AT.getTime() }
  return newTeam({ ...context, clock }, workspace, { ...WHOLE, ...wanted })
}

async function refused(begun: Promise<unknown>): Promise<string> {
  const error = (await begun.then(
    () => null,
    (thrown: unknown) => thrown,
  )) as UserError
  expect(error).toMatchObject({ name: 'UserError', exitCode: 2 })
  return error.message
}

async function read(place: TestPlace, path: string): Promise<string> {
  return await readFile(join(place.directory, path), 'utf8')
}

test('the name of a project is made of the letters and digits of its goal', () => {
  expect(slugOf('A FastAPI service that says "hello", with a start script!')).toBe(
    'a-fastapi-service-that-says-hello-with-a',
  )
  expect(slugOf('../../etc/passwd')).toBe('etc-passwd')
  expect(slugOf('做一个网站')).toBe('project')
  expect(slugOf('做一个 Web 网站')).toBe('web')
  expect(slugOf(`${'x'.repeat(39)} y`)).toBe('x'.repeat(39))
})

promise(
  'T1',
  'A team gets a project and a repository of its own, and files for its run and its log, which git looks into none of; of teams that begin at once each has its own',
)
test('a team gets a repository of its own, a file for its run, and git looks into none of its places', async () => {
  await using place = await makePlace('')
  const { directory, first } = await begin(place)
  expect(directory).toBe(join(place.directory, 'projects/a-fastapi-service-20261121-234007'))
  expect(await read(place, 'projects/a-fastapi-service-20261121-234007/.git/HEAD')).toBe('ref: refs/heads/main\n')
  expect(await readdir(join(directory, '.git'))).not.toContain('hooks')
  for (const folder of ['projects', 'runs', 'logs']) expect(await read(place, `${folder}/.gitignore`)).toBe('*\n')
  expect(JSON.parse(await read(place, 'runs/a-fastapi-service-2026-11-21.json'))).toEqual({
    goal: 'A FastAPI service',
    steps_executed: 0,
    results: [],
    review: null,
  })
  expect(git(place, 'status', '--porcelain')).toBe('')
  expect(await first(RUN)).toEqual({
    text: 'A FastAPI service',
    template: 'team',
    by: 'command',
    terms: {
      options: {
        mode: 'all',
        step: null,
        stepwise: false,
        repair: 1,
        accept: 'ask',
        workspace: { directory: place.directory, run: 'runs/a-fastapi-service-2026-11-21.json', logs: 'logs' },
      },
    },
  })
})

test('templates and hooks that a person has for new repositories are not in a project', async () => {
  await using place = await makePlace('')
  const template = join(place.root, 'template/hooks')
  await mkdir(template, { recursive: true })
  await writeFile(join(template, 'post-checkout'), '#!/bin/sh\n', { mode: 0o755 })
  await writeFile(
    join(place.home, '.gitconfig'),
    `[init]\n\ttemplateDir = ${join(place.root, 'template')}\n\tdefaultBranch = trunk\n`,
  )
  const { directory } = await begin(place)
  expect(existsSync(join(directory, '.git/hooks'))).toBe(false)
  expect(await readFile(join(directory, '.git/HEAD'), 'utf8')).toBe('ref: refs/heads/main\n')
})

test('git passes over what no agent can read in a project, so that `git add -A` of one does not fail at it', async () => {
  await using place = await makePlace('', { git: false })
  const { directory } = await begin(place)
  for (const name of ['.env', '.env.local', '.env.example', 'a.txt']) await writeFile(join(directory, name), '')
  expect(git({ ...place, directory }, 'status', '--porcelain', '-uall')).toBe('?? .env.example\n?? a.txt')
})

promise('T1')
test('of ten teams that begin in the same second each has a project and a run of its own', async () => {
  await using place = await makePlace('')
  const all = await Promise.all(Array.from({ length: 10 }, () => begin(place)))
  const names = all.map(({ directory }) => basename(directory)).sort()
  expect(new Set(names).size).toBe(10)
  expect(names).toContain('a-fastapi-service-20261121-234007-2')
  const runs = (await readdir(join(place.directory, 'runs'))).filter(name => name.endsWith('.json'))
  expect(runs.sort()).toContain('a-fastapi-service-2026-11-21-10.json')
  expect(runs).toHaveLength(10)
})

test('a team for which no session began leaves nothing, and one in whose project somebody has written leaves that', async () => {
  await using place = await makePlace('')
  const unused = await begin(place)
  await unused.dropUnused()
  expect(await readdir(place.directory)).toEqual(['.git', 'README.md'])
  const used = await begin(place)
  await writeFile(join(used.directory, 'mine.txt'), 'x')
  await used.dropUnused()
  expect(await readdir(used.directory)).toEqual(['.git', 'mine.txt'])
  expect(await read(place, 'projects/.gitignore')).toBe('*\n')
})

test('where the project of a session was deleted, what else there is of it stays', async () => {
  await using place = await makePlace('')
  const begun = await begin(place)
  const records = await openRecords({ ...cliContext(place), directory: begun.directory })
  await records.nextSessionId(AT)
  await rm(begun.directory, { recursive: true })
  await begun.dropUnused()
  expect((await readdir(join(place.directory, 'runs'))).sort()).toEqual([
    '.gitignore',
    'a-fastapi-service-2026-11-21.json',
  ])
  expect(await readdir(join(place.directory, 'projects'))).toEqual(['.gitignore'])
})

test('where a team begins beside another, the folders of that one stay', async () => {
  await using place = await makePlace('')
  const first = await begin(place)
  await (await begin(place)).dropUnused()
  expect(existsSync(first.directory)).toBe(true)
  expect((await readdir(join(place.directory, 'runs'))).sort()).toEqual([
    '.gitignore',
    'a-fastapi-service-2026-11-21.json',
  ])
})

promise('T2')
test('what a person has in the place of a folder is not written to, and nothing is made beside it', async () => {
  for (const [folder, put] of [
    ['projects', (path: string) => writeFile(path, '')],
    ['runs', (path: string) => symlink('/tmp', path)],
    ['logs', (path: string) => symlink('nowhere', path)],
  ] as const) {
    await using place = await makePlace('')
    await put(join(place.directory, folder))
    expect(await refused(begin(place))).toMatch(
      folder === 'projects' ? 'projects is not a folder; move it away' : `${folder} is a link; move it away`,
    )
    expect((await readdir(place.directory)).sort()).toEqual(['.git', 'README.md', folder].sort())
  }
})

promise('T2', 'A goal, a workspace or a place that will not do is refused in a sentence, and nothing is left behind')
test('a workspace that cannot be written to, or is none, is refused in one sentence', async () => {
  await using place = await makePlace('')
  expect(await refused(begin(place, {}, '/proc/self'))).toMatch(/^\/proc\/\d+\/projects cannot be made: /)
  expect(await refused(begin(place, {}, join(place.directory, 'none')))).toContain(
    'cannot be used as the work directory',
  )
})

test('a goal that is none is refused before anything is made', async () => {
  await using place = await makePlace('')
  expect(await refused(begin(place, { goal: ' \n' }))).toBe('There is no goal; say what the project should be.')
  expect(await refused(begin(place, { goal: 'x'.repeat(2 * 1024 * 1024) }))).toContain('may have at most')
  expect(await refused(begin(place, { goal: 'a \u001b[31mred\u001b[0m page' }))).toContain('control characters')
  expect(await readdir(place.directory)).toEqual(['.git', 'README.md'])
})

test('a directory that is there is worked in as it is, and goes on with the goal that it was made for', async () => {
  await using place = await makePlace('')
  const api = join(place.directory, 'api')
  await mkdir(api)
  await writeFile(join(api, 'PROJECT_INFO.json'), JSON.stringify({ goal: 'An API', plan: null }))
  const begun = await begin(place, { mode: 'work', goal: 'Write start.sh', step: 'Write start.sh', project: 'api' })
  expect(begun.directory).toBe(api)
  expect(existsSync(join(place.directory, 'projects'))).toBe(false)
  expect(existsSync(join(api, '.git'))).toBe(false)
  const session = await begun.first(RUN)
  expect(session).toMatchObject({ text: 'An API', terms: { options: { step: 'Write start.sh' } } })
  expect(session.terms?.options).toMatchObject({ workspace: { run: 'runs/write-start-sh-2026-11-21.json' } })
  await begun.dropUnused()
  expect(await readdir(api)).toEqual(['PROJECT_INFO.json'])
  expect(await refused(begin(place, { mode: 'review', goal: '', project: 'none' }))).toContain(
    'cannot be used as the work directory',
  )
  expect(await refused(begin(place, { mode: 'review', goal: '' }))).toContain('--project')
})

test('what a file of a project says of its goal is taken only if it could be one', async () => {
  await using place = await makePlace('')
  const api = join(place.directory, 'api')
  await mkdir(api)
  for (const text of ['{"goal":', '[]', '{"goal":7}', '{"goal":"a\\u001bb"}', `{"goal":"${'x'.repeat(2 << 20)}"}`]) {
    await writeFile(join(api, 'PROJECT_INFO.json'), text)
    const { first } = await begin(place, { mode: 'review', goal: '', project: 'api' })
    expect((await first(RUN)).text).toBe('The project api')
  }
  expect(await readdir(join(place.directory, 'runs'))).toContain('the-project-api-2026-11-21.json')
  await rm(join(api, 'PROJECT_INFO.json'))
  await symlink('/etc/passwd', join(api, 'PROJECT_INFO.json'))
  const { first } = await begin(place, { mode: 'review', goal: '', project: 'api' })
  expect((await first(RUN)).text).toBe('The project api')
})

test('a workspace inside of another repository will do', async () => {
  await using place = await makePlace('')
  const inner = join(place.directory, 'deep/space')
  await mkdir(inner, { recursive: true })
  const { directory } = await begin(place, {}, inner)
  expect(execFileSync('git', ['rev-parse', '--show-toplevel'], { cwd: directory, encoding: 'utf8' }).trim()).toBe(
    directory,
  )
  expect(git(place, 'status', '--porcelain')).toBe('')
  expect(lstatSync(join(inner, 'runs')).isDirectory()).toBe(true)
})
