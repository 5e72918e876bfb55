import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type CodexHomeChoice, chooseCodexHome } from '../../../src/engines/codex/find-codex.ts'

let root = ''
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'codemachine-home-'))
})
afterEach(() => rm(root, { recursive: true, force: true }))

const choose = (setting: CodexHomeChoice['setting'], env: NodeJS.ProcessEnv = {}) =>
  chooseCodexHome({
    setting,
    env: { PATH: '/bin', ...env },
    home: root,
    codemachineHome: join(root, 'cm'),
    directory: root,
  })

async function logIn(): Promise<string> {
  await mkdir(join(root, 'cm/codex'), { recursive: true })
  await writeFile(join(root, 'cm/codex/auth.json'), '{}')
  return join(root, 'cm/codex')
}

test("without a login of codemachine's own, the person's ~/.codex is used, and nothing is made in it", async () => {
  const path = join(root, '.codex')
  expect(await choose('auto')).toEqual({ path, owner: 'person', env: { PATH: '/bin' } })
  expect(await readdir(root)).toEqual([])
})

test('an empty CODEX_HOME counts as none, as it does for codex', async () => {
  expect(await choose('auto', { CODEX_HOME: '' })).toEqual({
    path: join(root, '.codex'),
    owner: 'person',
    env: { PATH: '/bin' },
  })
})

test("the person's CODEX_HOME is used, wherever codex is started", async () => {
  const path = join(root, 'mine')
  await mkdir(path)
  expect(await choose('auto', { CODEX_HOME: 'mine' })).toEqual({
    path,
    owner: 'person',
    env: { PATH: '/bin', CODEX_HOME: path },
  })
})

test('a CODEX_HOME that is no directory is named before codex ends over it', async () => {
  await expect(choose('auto', { CODEX_HOME: join(root, 'gone') })).rejects.toThrow(
    `CODEX_HOME is ${join(root, 'gone')}, which is not a directory; create it, or unset CODEX_HOME.`,
  )
})

test("a login of codemachine's own goes before the person's, unless the setting says otherwise", async () => {
  const path = await logIn()
  await mkdir(join(root, 'mine'))
  const env = { CODEX_HOME: join(root, 'mine') }
  expect(await choose('auto', env)).toEqual({ path, owner: 'codemachine', env: { PATH: '/bin', CODEX_HOME: path } })
  expect(await choose('codemachine', env)).toMatchObject({ path, owner: 'codemachine' })
  expect(await choose('own', env)).toMatchObject({ path: join(root, 'mine'), owner: 'person' })
})

test('a directory named auth.json is no login', async () => {
  await mkdir(join(root, 'cm/codex/auth.json'), { recursive: true })
  expect((await choose('auto')).owner).toBe('person')
})

test('the setting "codemachine" without a login needs a person', async () => {
  await expect(choose('codemachine')).rejects.toMatchObject({
    exitCode: 4,
    message: `The setting codex_home is "codemachine", but ${join(root, 'cm/codex')} does not exist; log in, or set it to "auto".`,
  })
})
