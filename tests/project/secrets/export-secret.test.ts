import { chmod, mkdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openWorkDirectory } from '../../../src/project/open-run.ts'
import { exportSecret } from '../../../src/project/secrets/export-secret.ts'
import { setSecret } from '../../../src/project/secrets/person-secrets.ts'
import { openSecrets } from '../../../src/secrets/store.ts'
import { openRecords, type Records } from '../../../src/session/records/records.ts'
import { cliContext } from '../../support/cli-context.ts'
import { git, makePlace, type TestPlace } from '../../support/place.ts'
import { promise } from '../../support/promise.ts'

let place: TestPlace
let records: Records
beforeAll(async () => {
  place = await makePlace('')
  records = await openRecords({ ...cliContext(place), directory: place.directory })
  await writeFile(join(place.directory, '.gitignore'), '.env*\nprivate/\n')
})
afterAll(() => place[Symbol.asyncDispose]())

const give = (key: string, value: string) => setSecret(cliContext(place), records, key, value, null)
const write = (key: string, to: string) => exportSecret(cliContext(place), records, key, to)
const read = (path: string) => readFile(join(place.directory, path), 'utf8')

test('a secret takes the place of the line that sets it, and all other lines stay', async () => {
  await writeFile(join(place.directory, '.env'), "# mine\nexport A_KEY='old\nlines'\nB=1", { mode: 0o644 })
  await chmod(join(place.directory, '.env'), 0o644)
  await give('A_KEY', 'new-0123456789')
  await give('C_KEY', 'with space $HOME "quoted"')
  expect((await write('A_KEY', '.env')).path).toBe(join(place.directory, '.env'))
  await write('C_KEY', join(place.directory, '.env'))
  expect(await read('.env')).toBe(`# mine\nexport A_KEY=new-0123456789\nB=1\nC_KEY='with space $HOME "quoted"'\n`)
  expect((await stat(join(place.directory, '.env'))).mode & 0o777).toBe(0o600)
  expect(openSecrets(records.secrets).hidden()).toEqual(['.env'])
})

test('where several lines set it, the last one counts for who reads the file: all of them are replaced', async () => {
  await writeFile(join(place.directory, '.env.twice'), 'A_KEY=one\nB=1\nexport A_KEY="two"\n')
  await give('A_KEY', 'new-0123456789')
  await write('A_KEY', '.env.twice')
  expect(await read('.env.twice')).toBe('A_KEY=new-0123456789\nB=1\nexport A_KEY=new-0123456789\n')
})

test.each([
  ['lines', 'first line\nsecond "line" $(id) `id`\n'],
  ['an apostrophe', `it's $HOME "here" \\ and \`id\`\nnext`],
])('a shell that reads the file has the value as it was given: %s', async (_, value) => {
  await give('D_KEY', `${value}\n`)
  await write('D_KEY', '.env.d')
  await write('D_KEY', '.env.d')
  const { execFileSync } = await import('node:child_process')
  const script = '. ./.env.d; printf %s "$D_KEY"'
  expect(execFileSync('bash', ['-c', script], { cwd: place.directory, encoding: 'utf8' })).toBe(value)
  expect((await read('.env.d')).match(/D_KEY=/g)).toHaveLength(1)
})

promise('B100', 'A secret is exported only where git ignores it, and never through a link')
promise(
  'T39',
  'A secret is exported only where git ignores the file, inside of the project, through no link, and while no session runs',
)
test('nothing is written where git would take it, outside of the project, through a link or while a session runs', async () => {
  await give('A_KEY', 'new-0123456789')
  await symlink('/tmp', join(place.directory, 'private'))
  await symlink('/tmp/elsewhere', join(place.directory, '.env.link'))
  await mkdir(join(place.directory, '.env.folder'))
  await writeFile(join(place.directory, '.env.added'), 'x')
  git(place, 'add', '-f', '.env.added')
  const refused: Record<string, string> = {
    'keys.txt': 'git does not ignore keys.txt',
    '.env.added': 'git does not ignore .env.added',
    '../.env': 'is not in',
    '/etc/.env': 'is not in',
    '.git/env': '.git/env is not a file that may receive a secret',
    'private/keys': 'private is a link',
    'gone/.env': 'gone is not there',
    '.env.link': '.env.link cannot be written: it is a link',
    '.env.folder': '.env.folder cannot be written: it is not a regular file',
  }
  for (const [to, sentence] of Object.entries(refused)) await expect(write('A_KEY', to)).rejects.toThrow(sentence)
  await expect(write('NO_KEY', '.env')).rejects.toThrow('There is no secret NO_KEY here.')
  await using _running = await openWorkDirectory(cliContext(place), records, () => {})
  await expect(write('A_KEY', '.env')).rejects.toMatchObject({ exitCode: 6 })
})
