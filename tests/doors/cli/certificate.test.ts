import { execFileSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { TYPES } from '../../../src/core/rules/attestations.ts'
import { signedBytes } from '../../../src/project/certificate/bundle.ts'
import { codemachineHere } from '../../support/in-process.ts'
import { git, makePlace, type TestPlace } from '../../support/place.ts'
import { promise } from '../../support/promise.ts'
import { test } from '../../support/side-by-side.ts'
import { agentKey } from './verify/agent-key.ts'
import { endSession, gate } from './verify/done-session.ts'

const NAMESPACE = 'attestation@codemachine.invalid'

/** A session that is done and whose work is committed since. */
async function done(): Promise<TestPlace> {
  const place = await makePlace('')
  await writeFile(join(place.directory, 'app.txt'), 'good\n')
  await endSession(place, [gate('grep -q good app.txt')])
  git(place, 'add', '-A')
  git(place, 'commit', '-qm', 'Work')
  return place
}

/** The private file of a security key that there is not, which wants a PIN; its public file is beside it. */
async function securityKey(place: TestPlace): Promise<string> {
  const field = (of: string | Buffer) => {
    const bytes = Buffer.from(of)
    const length = Buffer.alloc(4)
    length.writeUInt32BE(bytes.length)
    return Buffer.concat([length, bytes])
  }
  const type = 'sk-ssh-ed25519@openssh.com'
  const key = Buffer.concat([field(type), field(Buffer.alloc(32, 7)), field('ssh:')])
  // Touch and PIN, the handle on the device, nothing reserved, a comment.
  const handle = [Buffer.from([5]), field(Buffer.alloc(64)), field(''), field('key')]
  const half = Buffer.concat([Buffer.alloc(8), key, ...handle])
  const padding = Buffer.from(Array.from({ length: (8 - (half.length % 8)) % 8 }, (_, at) => at + 1))
  const head = [Buffer.from('openssh-key-v1\0'), field('none'), field('none'), field(''), Buffer.from([0, 0, 0, 1])]
  const all = Buffer.concat([...head, field(key), field(Buffer.concat([half, padding]))]).toString('base64')
  const path = join(place.root, 'token')
  const name = 'OPENSSH PRIVATE KEY-----'
  await writeFile(path, `-----BEGIN ${name}\n${all.replace(/.{70}/g, '$&\n')}\n-----END ${name}\n`, { mode: 0o600 })
  await writeFile(`${path}.pub`, `${type} ${key.toString('base64')} key\n`)
  return path
}

function linesOf(text: string) {
  return text
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line))
}

promise('D97', 'A certificate leaves the machine as an in-toto bundle, signed with a key that no agent can read')
test('a signed bundle is one that ssh-keygen alone verifies', async () => {
  await using place = await done()
  using key = await agentKey(place)
  const { exitCode, stdout, stderr } = await codemachineHere(place, ['certificate', '--sign', key.path], key)
  expect([exitCode, stderr]).toEqual([0, ''])
  const envelopes = linesOf(stdout)
  expect(envelopes).toHaveLength(3)
  for (const { payloadType, payload, signatures } of envelopes) {
    const blob = `-----BEGIN SSH SIGNATURE-----\n${signatures[0].sig}\n-----END SSH SIGNATURE-----\n`
    await writeFile(join(place.root, 'signature'), blob)
    const args = ['-Y', 'verify', '-n', NAMESPACE, '-I', 'ann@example.com', '-s', 'signature', '-f', 'allowed']
    const input = signedBytes(payloadType, Buffer.from(payload, 'base64'))
    const said = execFileSync('ssh-keygen', args, { cwd: place.root, input }).toString()
    expect(said).toContain(`Good "${NAMESPACE}" signature for ann@example.com`)
    expect(said).toContain(signatures[0].keyid)
  }
  const subject = JSON.parse(Buffer.from(envelopes[0].payload, 'base64').toString()).subject
  expect(subject.map(({ digest }: { digest: object }) => digest)).toEqual([
    { gitTree: git(place, 'rev-parse', 'HEAD^{tree}') },
    { gitCommit: git(place, 'rev-parse', 'HEAD') },
  ])
})

promise('D97')
test('a private key that rounds can read signs nothing, by itself or by its public file', async () => {
  await using place = await done()
  const path = join(place.root, 'key')
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', path])
  for (const named of [path, `${path}.pub`]) {
    const { exitCode, stdout, stderr } = await codemachineHere(place, ['certificate', '--sign', named])
    expect([exitCode, stdout]).toEqual([2, ''])
    expect(stderr).toContain(`Agents can read the private key ${path}, so an agent could sign with it.`)
  }
  const secret = join(place.root, 'secret')
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', 'passphrase', '-f', secret])
  const locked = await codemachineHere(place, ['certificate', '--sign', secret])
  expect(locked.stderr).toContain('is a private key with a passphrase; load it into ssh-agent')
  const unknown = await codemachineHere(place, ['certificate', '--sign', `${secret}.pub`])
  expect(unknown.stderr).toContain(`ssh-keygen could not sign with ${secret}.pub`)
  const none = await codemachineHere(place, ['certificate', '--sign', 'key::ssh-rsa nothing'])
  expect(none.stderr).toContain('key:: is not an ssh key')
  await using plain = await makePlace('', { git: false })
  await endSession(plain, [])
  const env = { PATH: join(plain.root, 'none') }
  const missing = await codemachineHere(plain, ['certificate', '--sign', `${secret}.pub`], { env })
  expect(missing.stderr).toContain('ssh-keygen was not found on the PATH')
})

test('a security key that is not plugged in, or is in no agent, is one sentence, and asks for no touch and no PIN', async () => {
  await using place = await done()
  const path = await securityKey(place)
  for (const [named, said] of [
    [path, `could not sign with ${path}: Signing (stdin) failed`],
    [`${path}.pub`, `could not sign with ${path}.pub: Couldn't get agent socket`],
  ] as const) {
    const { exitCode, stdout, stderr } = await codemachineHere(place, ['certificate', '--sign', named], {
      env: { SSH_AUTH_SOCK: '' },
    })
    expect([exitCode, stdout, stderr]).toEqual([2, '', expect.stringContaining(said)])
  }
})

test('a bundle that nobody signed says so, and holds no secret and no path of the machine', async () => {
  await using place = await makePlace('')
  await writeFile(join(place.directory, 'app.txt'), 'good\n')
  await endSession(place, [gate('test TOKEN-4711-abcdefgh != x')])
  const out = join(place.root, 'night.intoto.jsonl')
  const { exitCode, stdout, stderr } = await codemachineHere(place, ['certificate', '--out', out], {
    env: { SHOP_API_KEY: 'TOKEN-4711-abcdefgh' },
  })
  expect([exitCode, stdout]).toEqual([0, `${out}\n`])
  expect(stderr).toContain('It is not signed, so it proves nothing about its origin')
  const text = await readFile(out, 'utf8')
  expect(linesOf(text).map(({ predicateType }) => predicateType)).toEqual([
    TYPES.testResult,
    TYPES.verification,
    TYPES.session,
  ])
  expect(text).not.toContain('TOKEN-4711')
  expect(text).not.toContain(place.directory)
  expect(text).not.toContain('gitCommit')
})

test('a note holds the bundle on its commit, beside the notes of others, and needs such a commit', async () => {
  await using place = await done()
  git(place, 'notes', '--ref=codemachine', 'add', '-m', 'of another', 'HEAD~1')
  const { exitCode, stdout } = await codemachineHere(place, ['certificate', '--note', '--json'])
  expect(exitCode).toBe(0)
  expect(JSON.parse(stdout)).toMatchObject({ v: 1, session: '20261121_1', keyid: null, note: true, out: null })
  expect(linesOf(git(place, 'notes', '--ref=codemachine', 'show', 'HEAD'))).toHaveLength(3)
  expect(git(place, 'notes', '--ref=codemachine', 'show', 'HEAD~1')).toBe('of another')
  expect(git(place, 'log', '-1', '--format=%an <%ae>', 'refs/notes/codemachine')).toBe(
    'codemachine <codemachine@localhost>',
  )

  await writeFile(join(place.directory, 'app.txt'), 'good, too\n')
  await using other = await makePlace('')
  await writeFile(join(other.directory, 'app.txt'), 'good\n')
  await endSession(other, [gate('grep -q good app.txt')])
  const refused = await codemachineHere(other, ['certificate', '--note'])
  expect([refused.exitCode, refused.stderr]).toEqual([
    2,
    expect.stringContaining('No commit contains all proved files'),
  ])
})

test('without a session that is done, or a file for --json, there is one sentence', async () => {
  await using place = await makePlace('')
  const none = await codemachineHere(place, ['certificate'])
  expect([none.exitCode, none.stderr]).toEqual([2, expect.stringContaining('has a certificate, because none is done')])
  const json = await codemachineHere(place, ['certificate', '--json'])
  expect([json.exitCode, json.stderr]).toEqual([
    2,
    expect.stringContaining('use --json only with --out FILE or --note'),
  ])
})
