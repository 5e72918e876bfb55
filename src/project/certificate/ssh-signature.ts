import { createHash } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { UserError } from '../../base/errors.ts'
import { readBoundedText } from '../../platform/files.ts'
import { findProgram, type ProcessResult, runProcess } from '../../platform/run-process.ts'
import type { Records } from '../../session/records/records.ts'
import { oneLine } from '../../tell/words/safe-text.ts'
import { writableIn } from '../../workspace/git/find-git.ts'
import { agentFolders } from '../environment/agent-folders.ts'
import type { World } from '../world.ts'

/** Signature namespace: a signature counts for nothing else. */
const NAMESPACE = 'attestation@codemachine.invalid'
/** A security key may wait for a touch, and an ssh agent for a person. */
const TIMEOUT_MS = 60_000
const OUTPUT_BYTES = 1024 * 1024
const KEY_BYTES = 64 * 1024
const MOST_PRINCIPALS = 20

/** OpenSSH's `ssh-keygen`, with a folder where no agent can write. Disposing of it removes the folder. */
export class SshKeygen implements AsyncDisposable {
  readonly #program: string
  readonly #folder: string
  readonly #world: World

  private constructor(program: string, folder: string, world: World) {
    this.#program = program
    this.#folder = folder
    this.#world = world
  }

  /** Throws a `UserError` if there is no `ssh-keygen`. */
  static async open(world: World, { directory, temporary }: Records): Promise<SshKeygen> {
    const { env, platform } = world
    const where = await writableIn(directory, env, await agentFolders(world))
    const { path } = await findProgram('ssh-keygen', { env, platform, where })
    if (path === null)
      throw new UserError('CM0707', 'ssh-keygen was not found on the PATH; install OpenSSH, 8.9 or newer.')
    return new SshKeygen(path, await mkdtemp(join(temporary, 'signature-')), world)
  }

  /**
   * Returns the signer for a key: `key::` and a public key, a public key file whose private half is in ssh-agent, or the
   * private file of a security key. Throws a `UserError` for a private key that rounds could read.
   */
  async signerOf(typed: string, file: string): Promise<{ keyid: string; sign(data: Buffer): Promise<Buffer> }> {
    const { key, args } = typed.startsWith('key::')
      ? await this.#literal(typed.slice('key::'.length))
      : await this.#fromFile(file)
    const sign = async (data: Buffer) => {
      const ran = await this.#run(['-Y', 'sign', '-n', NAMESPACE, ...args], data)
      const blob = blobIn(ran.stdout)
      if (ran.exitCode === 0 && blob !== null) return blob
      throw new UserError('CM0707', `ssh-keygen could not sign with ${key.name}: ${saidBy(ran)}.`, {
        hint: 'ssh-add -l lists the keys that ssh-agent has.',
      })
    }
    return { keyid: fingerprint(key.bytes), sign }
  }

  /**
   * Returns the signer of a signature: its key, and the name in the file of allowed signers (null without that file). Throws
   * a `UserError` if the signature is not for these bytes, or its key is not in the file.
   */
  async signerIn(
    { signed, signature }: { signed: Buffer; signature: Buffer },
    allowed: string | null,
    of: string,
  ): Promise<Signer> {
    const bytes = keyIn(signature)
    if (bytes === null) throw new UserError('CM0708', `${of} has a signature that ssh-keygen did not make.`)
    const key = fingerprint(bytes)
    const path = join(this.#folder, 'signature')
    await writeFile(path, armored(signature), { mode: 0o600 })
    const whole = await this.#run(['-Y', 'check-novalidate', '-n', NAMESPACE, '-s', path], signed)
    if (whole.exitCode !== 0)
      throw new UserError('CM0708', `${of} was changed after ${key} signed it: the signature no longer matches.`)
    if (allowed === null) return { key, name: null }
    const found = await this.#run(['-Y', 'find-principals', '-s', path, '-f', allowed])
    for (const name of found.stdout.split('\n').slice(0, MOST_PRINCIPALS)) {
      if (name.trim() === '') continue
      const args = ['-Y', 'verify', '-n', NAMESPACE, '-s', path, '-f', allowed, '-I', name]
      if ((await this.#run(args, signed)).exitCode === 0) return { key, name }
    }
    throw new UserError('CM0708', `${of} is signed by ${key}, which is not in the list of signers ${allowed}.`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true })
  }

  async #literal(text: string) {
    const path = join(this.#folder, 'key.pub')
    await writeFile(path, `${text.trim()}\n`, { mode: 0o600 })
    return { key: publicKey(text, 'key::'), args: ['-U', '-f', path] }
  }

  async #fromFile(path: string) {
    const text = await keyText(path)
    if (!text.includes('PRIVATE KEY')) {
      const key = publicKey(text, path)
      if (path.endsWith('.pub')) await this.#refuseReadable(path.slice(0, -'.pub'.length))
      return { key, args: ['-U', '-f', path] }
    }
    const known = await this.#refuseReadable(path)
    if (known !== null) return { key: publicKey(known, path), args: ['-f', path] }
    throw new UserError(
      'CM0707',
      `${path} is a private key with a passphrase; load it into ssh-agent, and name ${path}.pub.`,
      {
        hint: `ssh-add ${path}`,
      },
    )
  }

  /** Returns the public half of a security key's private file. Null: it has a passphrase, or is missing. */
  async #refuseReadable(path: string): Promise<string | null> {
    const ran = await this.#run(['-y', '-P', '', '-f', path])
    if (ran.exitCode !== 0) return null
    // This file only says where on the device the key is.
    if (ran.stdout.startsWith('sk-')) return ran.stdout
    throw new UserError('CM0707', `Agents can read the private key ${path}, so an agent could sign with it.`, {
      hint: `Give it a passphrase (ssh-keygen -p -f ${path}), load it (ssh-add), and name ${path}.pub; or use a security key.`,
    })
  }

  async #run(args: readonly string[], input?: Buffer): Promise<ProcessResult> {
    const { env, home, signal } = this.#world
    const { PATH, SSH_AUTH_SOCK, SSH_SK_PROVIDER, SystemRoot } = env
    return await runProcess(this.#program, args, {
      env: { PATH, HOME: home, SSH_AUTH_SOCK, SSH_SK_PROVIDER, SystemRoot, LC_ALL: 'C' },
      encoding: 'utf8',
      outputLimit: OUTPUT_BYTES,
      timeoutMs: TIMEOUT_MS,
      signal,
      ...(input === undefined ? {} : { input }),
    })
  }
}

/** Signer: fingerprint of the key, and its known name; null: no file of allowed signers. */
export interface Signer {
  key: string
  name: string | null
}

async function keyText(path: string): Promise<string> {
  const read = await readBoundedText(path, KEY_BYTES)
  if (read === 'missing') throw new UserError('CM0707', `The key file ${path} does not exist; name a public key file.`)
  if ('problem' in read) throw new UserError('CM0707', `The key ${path} ${read.problem}; name a public key file.`)
  return read.text
}

/** Parses the key in a line like `ssh-ed25519 AAAA… comment`. */
function publicKey(line: string, name: string): { bytes: Buffer; name: string } {
  const [, type = '', base64 = ''] = /^([a-z0-9@.-]+) ([A-Za-z0-9+/=]+)(?:\s|$)/.exec(line.trim()) ?? []
  const bytes = Buffer.from(base64, 'base64')
  if (type !== '' && bytes.subarray(4, 4 + type.length).toString() === type) return { bytes, name }
  throw new UserError('CM0707', `${name} is not an ssh key; name a public key file, or write key:: and a public key.`)
}

function fingerprint(key: Buffer): string {
  return `SHA256:${createHash('sha256').update(key).digest('base64').replace(/=+$/, '')}`
}

const BEGIN = '-----BEGIN SSH SIGNATURE-----'
const END = '-----END SSH SIGNATURE-----'

function blobIn(text: string): Buffer | null {
  const [from, to] = [text.indexOf(BEGIN), text.indexOf(END)]
  return from === -1 || to < from ? null : Buffer.from(text.slice(from + BEGIN.length, to), 'base64')
}

function armored(blob: Buffer): string {
  const lines = blob.toString('base64').match(/.{1,70}/g) ?? []
  return [BEGIN, ...lines, END, ''].join('\n')
}

/** Returns the key that a signature names: `SSHSIG`, a version, then the length of the key and the key. */
function keyIn(blob: Buffer): Buffer | null {
  if (blob.length < 14 || blob.subarray(0, 6).toString() !== 'SSHSIG') return null
  const end = 14 + blob.readUInt32BE(10)
  return end <= blob.length ? blob.subarray(14, end) : null
}

function saidBy({ stderr, failure }: ProcessResult): string {
  if (failure === 'timeout') return `nobody answered within ${TIMEOUT_MS / 1000} seconds`
  const line = stderr.split('\n').findLast(each => each.trim() !== '' && !each.startsWith('Signing data'))
  return oneLine(line ?? failure ?? 'it does not say why', 200).replace(/\.$/, '')
}
