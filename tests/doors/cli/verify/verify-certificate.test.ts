import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { codemachineHere } from '../../../support/in-process.ts'
import { git, makePlace, type TestPlace } from '../../../support/place.ts'
import { promise } from '../../../support/promise.ts'
import { test } from '../../../support/side-by-side.ts'
import { agentKey } from './agent-key.ts'
import { endSession, gate } from './done-session.ts'

async function done(): Promise<TestPlace> {
  const place = await makePlace('')
  await writeFile(join(place.directory, 'app.txt'), 'good\n')
  await endSession(place, [gate('grep -q good app.txt')])
  git(place, 'add', '-A')
  git(place, 'commit', '-qm', 'Work')
  return place
}

/** Signs the bundle of a session with a key that only an ssh-agent has. */
async function signed(place: TestPlace): Promise<{ bundle: string; signers: string }> {
  using key = await agentKey(place)
  const bundle = join(place.root, 'night.intoto.jsonl')
  const made = await codemachineHere(place, ['certificate', '--sign', key.path, '--out', bundle], key)
  expect(made.exitCode).toBe(0)
  return { bundle, signers: key.signers }
}

/** A clone on a machine that has no records. */
async function elsewhere(place: TestPlace) {
  const other = await makePlace('', { git: false })
  const directory = join(other.directory, 'clone')
  await mkdir(directory)
  git(place, 'clone', '-q', '.', directory)
  return { ...other, directory, [Symbol.asyncDispose]: () => other[Symbol.asyncDispose]() }
}

promise(
  'D98',
  'On a machine without records, `verify --certificate` proves a bundle, or names the commit that broke it',
)
test('a fresh clone without records proves a signed bundle, and then names the commit that broke it', async () => {
  await using place = await done()
  const { bundle, signers } = await signed(place)
  await using other = await elsewhere(place)
  const args = ['verify', '--certificate', bundle, '--signers', signers]
  const unasked = await codemachineHere(other, args)
  expect([unasked.exitCode, unasked.stderr]).toEqual([2, expect.stringContaining('you cannot confirm these commands')])
  const proved = await codemachineHere(other, [...args, '--yes'])
  expect(proved.stdout).toMatch(/^origin: signed by ann@example\.com \(SHA256:/)
  expect(proved.stdout).toContain('\nsubject: the files here (commit ')
  expect(proved.stdout).toContain('\nfailures: none: grep -q good app.txt: passes')
  expect(proved.stdout.trimEnd().split('\n')).toHaveLength(6)
  expect(proved.exitCode).toBe(0)

  await writeFile(join(other.directory, 'app.txt'), 'bad\n')
  git(other, '-c', 'user.name=Bo', '-c', 'user.email=bo@example.com', 'commit', '-qam', 'Break')
  const broken = git(other, 'rev-parse', 'HEAD')
  // The signer was confirmed before.
  const { exitCode, stdout } = await codemachineHere(other, [...args, '--json'])
  expect(JSON.parse(stdout)).toMatchObject({
    verdict: { kind: 'broken', since: { commit: broken } },
    subject: { same: null },
  })
  expect(exitCode).toBe(4)
})

promise('D98')
test('a bundle that was tampered with, is of another signer or repository, or wants no sandbox is refused', async () => {
  await using place = await done()
  const { bundle, signers } = await signed(place)
  await using other = await elsewhere(place)
  const text = await readFile(bundle, 'utf8')
  const refused = async (of: string, ...more: string[]) => {
    const path = join(other.root, 'x.jsonl')
    await writeFile(path, of)
    const { exitCode, stderr } = await codemachineHere(other, ['verify', '--certificate', path, '--yes', ...more])
    expect(exitCode).toBe(2)
    return stderr
  }
  const tampered = text.replace(/"payload":"([^"]+)"/g, (_, payload: string) => {
    const json = Buffer.from(payload, 'base64').toString().replaceAll('grep -q good', 'true ; q good')
    return `"payload":"${Buffer.from(json).toString('base64')}"`
  })
  expect(await refused(tampered, '--signers', signers)).toContain('signed it: the signature no longer matches')
  await writeFile(join(other.root, 'nobody'), '')
  expect(await refused(text, '--signers', join(other.root, 'nobody'))).toContain('which is not in the list of signers')
  const bare = text
    .trimEnd()
    .split('\n')
    .map(line => `${Buffer.from(JSON.parse(line).payload, 'base64').toString()}\n`)
    .join('')
  expect(await refused(bare, '--signers', signers)).toContain('is not signed')
  expect(await refused(bare.replaceAll('workspace-write', 'danger-full-access'))).toContain('without a sandbox')
  await using foreign = await done()
  const stranger = bare.replaceAll(git(place, 'rev-parse', 'HEAD^{tree}'), 'c'.repeat(40))
  expect(await refused(stranger)).toContain('belongs to another repository')
  expect(git(foreign, 'status', '--porcelain')).toBe('')
})

test('a note that was fetched is checked without running anything, and one that is missing is one sentence', async () => {
  await using place = await done()
  await using other = await elsewhere(place)
  const none = await codemachineHere(other, ['verify', '--note', '--no-run'])
  expect([none.exitCode, none.stderr]).toEqual([2, expect.stringContaining('No commit here has a note of codemachine')])
  await codemachineHere(place, ['certificate', '--note'])
  git(other, 'fetch', '-q', 'origin', 'refs/notes/codemachine:refs/notes/codemachine')
  const { exitCode, stdout } = await codemachineHere(other, ['verify', '--note', '--no-run'])
  expect(stdout).toContain('origin: not signed, so nothing is proved about it\n')
  expect(stdout).toContain('subject: the files here')
  expect(stdout).toContain('(--no-run)')
  expect(exitCode).toBe(0)
})

test('a note on a commit that is gone is one sentence', async () => {
  await using place = await done()
  await codemachineHere(place, ['certificate', '--note'])
  const gone = git(place, 'rev-parse', 'HEAD')
  git(place, 'reset', '-q', '--hard', 'HEAD~1')
  git(place, 'reflog', 'expire', '--expire=now', '--all')
  git(place, 'gc', '-q', '--prune=now')
  expect(() => git(place, 'cat-file', '-e', gone)).toThrow()
  const { exitCode, stdout, stderr } = await codemachineHere(place, ['verify', '--note', '--no-run'])
  const said = `Neither HEAD nor a commit before it has a note of codemachine; other commits have, such as ${gone.slice(0, 12)}.`
  expect([exitCode, stdout, stderr]).toEqual([2, '', expect.stringContaining(said)])
})

promise('D98')
test('the commands of a bundle write nothing outside, and have no network and no secret', async () => {
  // Not below /tmp: the sandbox leaves that writable.
  const outside = await mkdtemp('/var/tmp/codemachine-outside-')
  await using _ = { [Symbol.asyncDispose]: () => rm(outside, { recursive: true }) }
  await using place = await makePlace('')
  await writeFile(join(place.directory, 'app.txt'), 'good\n')
  const lines = [
    `touch ${outside}/x`,
    'exec 3<>/dev/tcp/127.0.0.1/1 || exec 3<>/dev/tcp/192.0.2.1/80',
    'touch .git/hooks/x',
  ]
  await endSession(place, [...lines.map(run => gate(run)), gate('test -z "$SHOP_API_KEY"')])
  git(place, 'add', '-A')
  git(place, 'commit', '-qm', 'Work')
  await codemachineHere(place, ['certificate', '--note'])
  await using other = await elsewhere(place)
  git(other, 'fetch', '-q', 'origin', 'refs/notes/codemachine:refs/notes/codemachine')
  const { exitCode, stdout } = await codemachineHere(other, ['verify', '--note', '--yes', '--json'], {
    env: { SHOP_API_KEY: 'TOKEN-4711-abcdefgh' },
  })
  const { gates } = JSON.parse(stdout)
  expect([exitCode, gates.map(({ status }: { status: string }) => status)]).toEqual([
    4,
    ['failed', 'failed', 'failed', 'passed'],
  ])
  expect(await readdir(outside)).toEqual([])
})

test('what is required needs signers, or that anybody is believed, and means something only of a bundle', async () => {
  await using place = await makePlace('')
  for (const [args, said] of [
    [['--note', '--require', 'gates'], '--require needs --signers FILE; --signers anybody accepts'],
    [['--require', 'gates'], '--require works only with --certificate FILE or --note.'],
    [['--summary', 'x.md'], '--summary works only with --certificate FILE or --note.'],
    [['--note', '--summary', 'no/x.md'], 'The summary cannot be written to'],
  ] as const) {
    const { exitCode, stderr } = await codemachineHere(place, ['verify', ...args])
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining(said)])
  }
})
