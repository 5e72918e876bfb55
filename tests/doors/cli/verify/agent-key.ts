import { execFileSync, spawn } from 'node:child_process'
import { readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { TestPlace } from '../../../support/place.ts'

/** A key of which only an ssh-agent knows the private half; disposing of it ends that. `signers`: a file that names it Ann. */
export async function agentKey(place: TestPlace) {
  const path = join(place.root, 'key')
  const socket = join(place.root, 'agent')
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', path])
  const agent = spawn('ssh-agent', ['-D', '-a', socket], { stdio: ['ignore', 'pipe', 'ignore'], env: place.env })
  await new Promise(resolve => agent.stdout.once('data', resolve))
  const env = { SSH_AUTH_SOCK: socket }
  execFileSync('ssh-add', ['-q', path], { env: { ...process.env, ...env } })
  await rename(path, join(place.root, 'away'))
  const signers = join(place.root, 'allowed')
  await writeFile(signers, `ann@example.com ${await readFile(`${path}.pub`, 'utf8')}`)
  return { path: `${path}.pub`, signers, env, [Symbol.dispose]: () => void agent.kill() }
}
