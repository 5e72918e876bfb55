import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execa } from 'execa'
import { OLDEST_CODEX } from '../src/engines/codex/find-codex.ts'

// Runs the main job (`codemachine demo`) on several codex versions from npm, and says for each how it ended.
const VERSIONS = [OLDEST_CODEX, '0.160.0', '0.166.0', 'latest']
const versions = process.argv.length > 2 ? process.argv.slice(2) : VERSIONS
const folder = await mkdtemp(join(tmpdir(), 'codemachine-compat-'))
try {
  for (const version of versions) console.log(await play(version))
} finally {
  await rm(folder, { recursive: true })
}

async function play(version: string): Promise<string> {
  const prefix = join(folder, version)
  await execa('npm', ['install', '--prefix', prefix, '--no-audit', '--no-fund', `@openai/codex@${version}`])
  const bin = join(prefix, 'node_modules', '.bin', 'codex')
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
