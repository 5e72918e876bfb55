import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execa } from 'execa'
import { OLDEST_CODEX, parseVersionOutput } from '../src/engines/codex/find-codex.ts'
import { playProfile } from './compat-profiles.ts'

// Runs the main job (`codemachine demo`) and an agent's profile on several codex versions from npm, and says for each how
// it ended.
const VERSIONS = [OLDEST_CODEX, '0.140.0', '0.145.0', '0.154.0', '0.155.0', 'latest']
const versions = process.argv.length > 2 ? process.argv.slice(2) : VERSIONS
const folder = await mkdtemp(join(tmpdir(), 'codemachine-compat-'))
try {
  for (const version of versions) console.log(`${await play(version)}; ${await profile(version)}`)
} finally {
  await rm(folder, { recursive: true })
}

/** Of a version that `play` has installed. */
async function profile(version: string): Promise<string> {
  try {
    const bin = binOf(version)
    const installed = parseVersionOutput((await execa(bin, ['--version'])).stdout)
    return `profile read from ${await playProfile(bin, installed ?? version, folder)}`
  } catch (error) {
    process.exitCode = 1
    return `the profile FAILED: ${error instanceof Error ? error.message : String(error)}`
  }
}

function binOf(version: string): string {
  return join(folder, version, 'node_modules', '.bin', 'codex')
}

async function play(version: string): Promise<string> {
  const prefix = join(folder, version)
  await execa('npm', ['install', '--prefix', prefix, '--no-audit', '--no-fund', `@openai/codex@${version}`])
  const bin = binOf(version)
  const { stdout, exitCode } = await execa('node', ['dist/bin.js', 'demo', '--fast', '--json', '--codex-bin', bin], {
    reject: false,
    env: { TMPDIR: folder, HOME: folder },
    timeout: 300_000,
  })
  if (exitCode !== 0) process.exitCode = 1
  const events = stdout.split('\n').flatMap(line => (line.startsWith('{') ? [JSON.parse(line)] : []))
  const { codex = version } = events.find(event => event.type === 'round-started') ?? {}
  const refused = events.filter(event => event.type === 'done-refused').length
  const ended = events.findLast(event => event.type === 'session-ended')
  if (!ended) return `codex ${codex}: no session came to its end (exit code ${exitCode})`
  const { outcome, rounds, durationMs } = ended
  return `codex ${codex}: ${outcome.kind}, exit code ${exitCode}, ${rounds} rounds, ${refused} claims refused, ${(durationMs / 1000).toFixed(1)} s`
}
