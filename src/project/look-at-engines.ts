import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { version } from '../base/package.ts'
import type { EngineSetup } from '../core/engine.ts'
import { startTimeOf } from '../platform/processes.ts'
import { shellWord } from '../platform/shell-word.ts'
import { recordsOf, rootOf } from '../session/records/records.ts'
import type { Finding } from '../tell/words/doctor.ts'
import { ok, warning } from './doctor/checks.ts'
import { codexFor, namedCodex, timesOf } from './engine-of-project.ts'
import { settingsOf } from './open-run.ts'
import { externalEngine, type NamedEngine, PRESETS } from './settings/engines.ts'
import type { World } from './world.ts'

/** How long an engine may take to answer one request, in ms. */
const ANSWER_MS = 40_000

/**
 * Checks other makers' agents that can run rounds: each begins and ends a session in its sandbox, in a new empty directory.
 * No model is asked. Returns one finding each.
 * @param only their names; null: all
 */
export async function lookAtEngines(
  world: World,
  directory: string,
  only: readonly string[] | null = null,
): Promise<Finding[]> {
  const loaded = await settingsOf(world, directory, {})
  const { settings, engines } = loaded
  const asked = [...engines.values()].filter(({ name }) => only === null || only.includes(name))
  const { clock, platform, env, home, templates, pid } = world
  const root = rootOf(world)
  const binary = await codexFor(world, recordsOf({ root, templates }, directory), namedCodex(loaded), {
    makesCopy: false,
  })
  const place = await realpath(await mkdtemp(join(tmpdir(), 'codemachine-engines-')))
  const setup: EngineSetup = {
    directory: place,
    sandbox: { mode: settings.sandbox, network: settings.network, writable: [] },
    env,
    binary,
    overrides: [],
    key: 'engines',
    owner: { pid, startTime: await startTimeOf(pid, platform) },
    platform,
    clock,
    codemachineVersion: version,
    requestMs: ANSWER_MS,
    endMs: settings.endSeconds * 1000,
    ...timesOf(settings),
    log: () => {},
  }
  try {
    return await Promise.all(asked.map(each => lookAtEngine(each, setup, { home, root, env })))
  } finally {
    await rm(place, { recursive: true, force: true })
  }
}

async function lookAtEngine(
  named: NamedEngine,
  setup: EngineSetup,
  places: { home: string; root: string; env: NodeJS.ProcessEnv },
): Promise<Finding> {
  const external = externalEngine(named, places)
  // Loaded only for a check, as in a run.
  const { AcpEngine } = await import('../engines/acp/acp-engine.ts')
  const engine = new AcpEngine(external, setup)
  try {
    const said = await engine.greet()
    if ('agent' in said) {
      const box =
        setup.sandbox.mode === 'danger-full-access'
          ? 'it runs without a sandbox'
          : `it may also write ${external.home.join(', ')}; it reaches ${engine.reaches.map(host => (host === '*' ? 'every host' : host)).join(', ')}`
      return ok('engine', `${named.name} works: ${said.agent}; ${box}`)
    }
    const why = said.message ?? 'it began no session.'
    const sentence = why.startsWith(named.name) ? why : `${named.name}: ${why}`
    return warning('engine', sentence, mendOf(named, external.env, said.class))
  } finally {
    await engine.close()
  }
}

/** Returns a sentence that says how to fix an engine that begins no session. */
function mendOf({ name }: NamedEngine, env: Readonly<Record<string, string>>, why: string): string {
  const preset = PRESETS[name]
  if (preset === undefined) return `Correct [engines.${name}] in your own config.toml, or leave it out.`
  if (why !== 'auth' && why !== 'config') return 'Run its program by hand to see what is wrong, or ignore it.'
  if (why === 'config') return `Install it with \`${preset.install}\`, or ignore it.`
  const variables = Object.entries(env).map(([variable, value]) => `${variable}=${shellWord(value)}`)
  return `Log in: ${[...variables, preset.login].join(' ')}`
}
