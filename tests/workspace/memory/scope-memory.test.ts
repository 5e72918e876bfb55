import { mkdir, mkdtemp, readdir, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type SessionFolder, scopeFolder } from '../../../src/workspace/memory/memory-paths.ts'
import { openScopedMemory } from '../../../src/workspace/memory/scope-memory.ts'
import { createSessionFolder } from '../../../src/workspace/memory/session-folder.ts'
import { promise } from '../../support/promise.ts'
import { isWindows, unless } from '../../support/skipped.ts'

let home: string
let directory: string
let place: SessionFolder
let scope: { name: string; goal: string } | null
beforeEach(async () => {
  home = await realpath(await mkdtemp(join(tmpdir(), 'scope-memory-')))
  directory = join(home, 'work')
  scope = null
  await mkdir(directory)
  place = await createSessionFolder({
    directory,
    id: '20261120_1',
    goal: 'The whole.',
    git: { commit: null, branch: null },
    records: join(home, 'records'),
    redact: text => text,
  })
})
afterEach(() => rm(home, { recursive: true, force: true }))

const open = () =>
  openScopedMemory({
    place,
    directory,
    goal: 'The whole.',
    scope: () => scope,
    head: async () => ({ commit: '1234567e8', branch: 'main' }),
    redact: text => text.replaceAll('hunter2', '[secret T]'),
  })
const fix = { name: 'fix', goal: 'Fix it.', gates: [] }
const at = (file: string) => join(place.folder, 'steps', 'fix', file)
const claim = async (path: string) =>
  await writeFile(path, (await readFile(path, 'utf8')).replace('finite_incantatem: false', 'finite_incantatem: true'))

test('a scope has memory files of its own, which are read and written while the session is in it', async () => {
  const { memory, scopes } = open()
  await scopes.make({ ...fix, goal: 'Fix it with hunter2.' })
  expect(await readFile(at('MAIN.md'), 'utf8')).toMatch(
    /short_title: "Fix it with \[secret T\]\."\ngit_commit: "1234567e8"\n[\s\S]*```text\nFix it with hunter2\.\n```/,
  )
  expect(JSON.parse(await readFile(at('tasks.json'), 'utf8'))).toEqual({ tasks: [] })
  await claim(at('MAIN.md'))
  expect((await memory.read()).main).toMatchObject({ shortTitle: 'The whole.', finiteIncantatem: false })
  scope = fix
  const { main, problems } = await memory.read()
  expect([main.finiteIncantatem, problems]).toEqual([true, []])
  await claim(place.main)
  await memory.withdrawClaim()
  expect([(await memory.read()).main.finiteIncantatem, await readFile(place.main, 'utf8')]).toEqual([
    false,
    expect.stringContaining('finite_incantatem: true'),
  ])
  await scopes.withdrawOfSession()
  expect(await readFile(place.main, 'utf8')).toContain('finite_incantatem: false')
})

test('one that is entered again goes on with its files, which claim nothing', async () => {
  await open().scopes.make(fix)
  await claim(at('MAIN.md'))
  await writeFile(at('tasks.json'), '{"tasks":[{"id":"T1","name":"x","done":false}]}')
  const { memory, scopes } = open()
  await scopes.make({ ...fix, goal: 'Another goal.' })
  scope = { name: 'fix', goal: 'Another goal.' }
  const { main, tasks, texts } = await memory.read()
  expect([main.finiteIncantatem, tasks.length]).toEqual([false, 1])
  expect(texts.main).toContain('# Goal\n\n```text\nAnother goal.\n```\n')
})

test('the goal of a scope is put back as that of a session is, each in its own file; that of the next try is nothing to be told', async () => {
  const { memory, scopes } = open()
  await scopes.make({ ...fix, goal: 'Fix both with hunter2.' })
  scope = { name: 'fix', goal: 'Fix both with [secret T].' }
  expect((await memory.read()).goalChange).toBe(undefined)
  await writeFile(
    at('MAIN.md'),
    (await readFile(at('MAIN.md'), 'utf8')).replace('Fix both with hunter2.\n`', 'Fix one.\n`'),
  )
  await writeFile(place.main, (await readFile(place.main, 'utf8')).replace('The whole.\n`', 'The half.\n`'))
  expect(await memory.read()).toMatchObject({
    goalChange: { how: 'changed', found: expect.stringContaining('Fix one.') },
  })
  expect(await readFile(at('MAIN.md'), 'utf8')).toContain('```text\nFix both with hunter2.\n```')
  scope = null
  expect(await memory.read()).toMatchObject({ goalChange: { found: expect.stringContaining('The half.') } })
  await scopes.make({ ...fix, goal: 'Fix all.' })
  scope = { name: 'fix', goal: 'Fix all.' }
  const { goalChange, texts } = await memory.read()
  expect([goalChange, texts.main.includes('```text\nFix all.\n```')]).toEqual([undefined, true])
})

test('one whose making was cut off is made whole, and nobody is told that files were missing', async () => {
  await open().scopes.make(fix)
  await rm(join(place.folder, 'steps'), { recursive: true })
  const { memory, scopes } = open()
  await scopes.make(fix)
  scope = fix
  expect(await memory.read()).toMatchObject({ problems: [], main: { shortTitle: 'Fix it.' } })
  const { lastGood } = scopeFolder(place, 'fix')
  await rm(join(lastGood, 'tasks.json'))
  await rm(join(place.folder, 'steps'), { recursive: true })
  const again = open()
  await again.scopes.make(fix)
  expect((await again.memory.read()).problems).toEqual([])
})

promise(
  'D30',
  "What agents have put in the place of a scope's memory files, such as a link or a claim, is set aside when they are made",
)
test.each<[string, () => Promise<unknown>, string]>([
  ['a folder', () => mkdir(at('MAIN.md'), { recursive: true }), 'steps/fix.broken-1'],
  ['a file', () => writeFile(join(place.folder, 'steps'), 'x'), 'steps.broken-1'],
  [
    'files that claim done',
    async () => {
      await mkdir(at('.'), { recursive: true })
      await writeFile(at('MAIN.md'), '---\nstatus: done\nfinite_incantatem: true\n---\n# Goal\nNothing.\n')
    },
    'steps/fix.broken-1',
  ],
])('%s that an agent has put in the place of what is to be new is set aside', async (_, plant, aside) => {
  await plant()
  const { memory, scopes } = open()
  await scopes.make(fix)
  scope = fix
  const { main, texts, problems } = await memory.read()
  expect([main.finiteIncantatem, problems]).toEqual([false, []])
  expect(texts.main).toContain('Fix it.')
  const [folder = '', name] = aside.includes('/') ? aside.split('/') : ['', aside]
  expect(await readdir(join(place.folder, folder))).toContain(name)
})

promise('D30')
test.skipIf(isWindows)(
  `a link there is set aside, and nothing is written through it${unless(!isWindows, 'links need a right')}`,
  async () => {
    const elsewhere = join(home, 'elsewhere')
    await mkdir(elsewhere)
    await symlink(elsewhere, join(place.folder, 'steps'))
    await open().scopes.make(fix)
    expect(await readdir(elsewhere)).toEqual([])
    expect(await readFile(at('MAIN.md'), 'utf8')).toContain('Fix it.')
  },
)

test('a goal that is larger than 1 MiB is refused', async () => {
  await expect(open().scopes.make({ ...fix, goal: 'x'.repeat(2 ** 20 + 1) })).rejects.toThrow('(1 MiB)')
})
