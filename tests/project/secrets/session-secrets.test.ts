import { chmod, mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { deflateSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { keepsGitObjects } from '../../../src/core/shapes/secrets.ts'
import { checkSecret, setSecret } from '../../../src/project/secrets/person-secrets.ts'
import { openSessionSecrets } from '../../../src/project/secrets/session-secrets.ts'
import { openRedactor } from '../../../src/secrets/secrets.ts'
import { openRecords, type Records } from '../../../src/session/records/records.ts'
import { cliContext } from '../../support/cli-context.ts'
import { cpuMs } from '../../support/cpu-time.ts'
import { git, makePlace, type TestPlace } from '../../support/place.ts'
import { promise } from '../../support/promise.ts'

const KEY = 'SERVICE_API_KEY'
const VALUE = 'sk-live-0123456789abcdef'

let place: TestPlace
let records: Records
beforeAll(async () => {
  place = await makePlace('')
  records = await openRecords({ ...cliContext(place), directory: place.directory })
})
afterAll(() => place[Symbol.asyncDispose]())

const open = (binary = '/usr/bin/codex', of = records, writable: string[] = []) => {
  const redactor = openRedactor({ env: {}, codexHome: null, project: of.secrets, clock: cliContext(place).clock })
  return { redactor, secrets: openSessionSecrets(of, { binary: { path: binary }, redactor, writable }) }
}
const write = async (path: string, content: string | Buffer = '') => {
  await mkdir(dirname(join(place.directory, path)), { recursive: true })
  await writeFile(join(place.directory, path), content)
}
/** What is denied in the work directory. */
const denied = () =>
  open()
    .secrets.unreadable()
    .filter(path => path.startsWith(place.directory))
    .map(path => relative(place.directory, path))

promise('B98')
promise('T35', 'No command of an agent can read or make `.env` files of the project, nor read the records')
describe('what no command of an agent may read', () => {
  test('are the files of variables, there or not, and those that are there deeper, but no samples of them', async () => {
    await write('.env.local')
    await write('api/.env')
    await write('api/deep/.env.production.local')
    await write('.env.example')
    await write('api/.env.sample')
    await write('node_modules/x/.env')
    await write('.environment')
    expect(denied().sort()).toEqual([
      '.env',
      ...['dev', 'development', 'local', 'prod', 'production', 'staging', 'test'].flatMap(stage =>
        stage === 'local' ? ['.env.local'] : [`.env.${stage}`, `.env.${stage}.local`],
      ),
      'api/.env',
      'api/deep/.env.production.local',
    ])
  })

  test('is what a link of that name leads to, if that is a file', async () => {
    await mkdir(join(place.root, 'shared'))
    await writeFile(join(place.root, 'shared', 'variables'), '')
    await symlink(join(place.root, 'shared', 'variables'), join(place.directory, '.env'))
    await symlink('/usr', join(place.directory, 'api', '.env.usr'))
    await symlink('nowhere', join(place.directory, 'api', '.env.nowhere'))
    const all = open().secrets.unreadable()
    expect(all).toContain(join(place.root, 'shared', 'variables'))
    expect(all).not.toContain(join(place.directory, '.env'))
    expect(all.filter(path => path.startsWith('/usr') || path.includes('nowhere'))).toEqual([])
    await rm(join(place.directory, '.env'))
  })

  promise('T34')
  test('are files that hold a secret, also after the session, as long as their folder is there', async () => {
    await write('config/keys.json', VALUE)
    await open().secrets.hide(['config/keys.json', 'gone/with/folder'])
    expect(denied()).toContain('config/keys.json')
    expect(denied().filter(path => path.startsWith('gone'))).toEqual([])
    await rm(join(place.directory, 'config'), { recursive: true })
    await symlink('/etc', join(place.directory, 'config'))
    expect(
      open()
        .secrets.unreadable()
        .filter(path => path.startsWith('/etc') || path.includes('keys.json')),
    ).toEqual([])
  })

  test('is denied whatever its name: what codex would take for a pattern is one that matches it', async () => {
    const names = { 'pages/[id].js': 'pages/?id?.js', '*': '?', 'a\n{b,c}\\': 'a??b,c??', '{b}\\': '{b}\\' }
    for (const name of Object.keys(names)) await write(name, VALUE)
    await open().secrets.hide(Object.keys(names))
    expect(denied()).toEqual(expect.arrayContaining(Object.values(names)))
    expect(denied()).not.toContain('*')
    for (const name of Object.keys(names)) await rm(join(place.directory, name))
  })

  test('are the records of all projects, but for the codex that is kept there and a work directory in them', async () => {
    const state = join(records.root, 'state')
    expect(open().secrets.unreadable()).toContain(state)
    await mkdir(join(state, 'other-project', 'secrets'), { recursive: true })
    await mkdir(join(records.folder, 'bin', '0.169.0'), { recursive: true })
    const binary = join(records.folder, 'bin', '0.169.0', 'codex')
    await writeFile(binary, '')
    const { secrets } = open(binary)
    await setSecret(cliContext(place), records, KEY, VALUE, null)
    const all = secrets.unreadable()
    expect(all).not.toContain(state)
    expect(all).toContain(join(state, 'other-project'))
    expect(all).toContain(records.secrets)
    expect(all).toContain(records.sessionFolder('').replace(/\/$/, ''))
    expect(all.filter(path => binary.startsWith(path))).toEqual([])
    const inside = join(state, 'other-project', 'tree')
    await mkdir(inside)
    const within = open('/usr/bin/codex', { ...records, directory: inside }).secrets.unreadable()
    expect(within.filter(path => inside.startsWith(path))).toEqual([])
    expect(within).toContain(join(state, 'other-project', 'secrets'))
  })

  test('is found in little time, however large the work directory is', async () => {
    for (let folder = 0; folder < 30; folder++) {
      await mkdir(join(place.directory, 'many', `${folder}`), { recursive: true })
      for (let file = 0; file < 100; file++) await writeFile(join(place.directory, 'many', `${folder}`, `${file}`), '')
    }
    await mkdir(join(place.directory, 'many', 'closed'), { mode: 0 })
    const { secrets } = open()
    const before = cpuMs()
    for (let n = 0; n < 10; n++) secrets.unreadable()
    expect((cpuMs() - before) / 10).toBeLessThan(100)
    await chmod(join(place.directory, 'many', 'closed'), 0o700)
    await rm(join(place.directory, 'many'), { recursive: true })
  })
})

test('a secret that is stored is known at once, and found in the files that have it', async () => {
  const { redactor, secrets } = open()
  redactor.text('')
  await setSecret(cliContext(place), records, KEY, `${VALUE}-other\n`, undefined)
  secrets.refresh()
  expect(redactor.text(`${VALUE}-other`)).toBe(`[secret ${KEY}]`)
  expect(await secrets.get(KEY)).toEqual({ key: KEY, value: `${VALUE}-other`, check: null })
  await write('out/log.txt', Buffer.from(`${VALUE}-other`).toString('hex'))
  const wanted = [{ name: KEY, value: `${VALUE}-other` }]
  const search = () => secrets.search(Date.now() - 1_000, wanted, new AbortController().signal)
  expect(await search()).toEqual({ files: ['out/log.txt'], problem: null })
  // No command that comes a moment later has left it there, and no agent can read it any more.
  await secrets.hide(['out/log.txt'])
  expect(await search()).toEqual({ files: [], problem: null })
})

promise('T54')
test('the git directory of a work tree is searched where it lies, and only objects that are there are denied', async () => {
  const gitDir = join(place.root, 'shared.git')
  const object = join(gitDir, 'objects', 'ab', 'c'.repeat(38))
  await mkdir(dirname(object), { recursive: true })
  await writeFile(object, deflateSync(`blob 24\0${VALUE}`))
  const own = '.git/objects/cd/'.padEnd(54, 'e')
  await write(own, deflateSync(`blob 24\0${VALUE}`))
  const { secrets } = open('/usr/bin/codex', records, [join(gitDir, 'worktrees', 'one'), gitDir])
  const search = () => secrets.search(0, [{ name: KEY, value: VALUE }], new AbortController().signal)
  const { files, problem } = await search()
  expect([files.filter(keepsGitObjects).sort(), problem]).toEqual([[own, object].sort(), null])
  await secrets.hide(files)
  expect(await search()).toEqual({ files: [], problem: null })
  // As another session of the project sees it.
  const denied = () => open().secrets.unreadable()
  expect(denied()).toEqual(expect.arrayContaining([object, join(place.directory, own)]))
  await rm(object)
  await rm(join(place.directory, own))
  expect(denied().filter(path => path.includes('objects'))).toEqual([])
})

promise('B98', 'Commands of agents can neither read nor make `.env` files, the records, and files that hold a secret')
promise('T35')
test('a command in the sandbox can neither read nor make what is denied', async () => {
  await write('seen.txt', 'seen')
  await write('hidden.txt', VALUE)
  await write('api/.env', VALUE)
  git(place, 'add', 'hidden.txt')
  const object = git(place, 'rev-parse', ':hidden.txt')
  git(place, 'rm', '-q', '--cached', 'hidden.txt')
  await open().secrets.hide(['hidden.txt', `.git/objects/${object.slice(0, 2)}/${object.slice(2)}`])
  const check = [
    `! git cat-file -p ${object}`,
    'git log -1 --format=%H',
    `test "$${KEY}" = ${VALUE}`,
    'cat seen.txt',
    'touch made.txt',
    '! cat hidden.txt',
    '! cat api/.env',
    '! sh -c "echo x > .env"',
    '! sh -c "echo x > .env.local.copy && mv .env.local.copy .env.production"',
    `! cat ${records.secrets}/${KEY}.json`,
    `! ls ${records.secrets}`,
  ].join(' && ')
  await setSecret(cliContext(place), records, KEY, VALUE, check)
  expect(await checkSecret(cliContext(place), records, {}, KEY)).toMatchObject({ ok: true, problem: null })
})
