import { capabilitiesOf } from '../../engines/codex/find-codex.ts'
import { threadStartParams } from '../../engines/codex/round-start.ts'
import { type SandboxChoice, sandboxTerms, shieldEnvironment } from '../../engines/codex/sandbox.ts'
import type { Finding } from '../../words/doctor.ts'
import type { World } from '../world.ts'
import {
  checkDirectory,
  checkDisk,
  checkGit,
  checkLeftovers,
  checkNode,
  checkRecords,
  checkSettings,
  recordsRoot,
  type SettingsInUse,
} from './checks.ts'
import { askCodex, checkBinary, checkHome, findingsOf } from './codex.ts'
import { type Bench, openBench, problem } from './finding.ts'

/** More than anything on a healthy machine takes, ms. */
const LOOK_MS = 3_000
/** What `codex --version` gets on a machine that is busy, ms. */
const FIND_MS = 5_000
/** From the start to the last answer of codex, ms. With a network that swallows everything its models take it 10 s. */
const ANSWERS_MS = 12_000

/**
 * Looks whether all that a run needs is there, and changes nothing; tells what each check has found as soon as it and
 * those before it have ended. `codexBin`: null for that of the settings.
 */
export async function* examine(
  world: World,
  options: { directory: string; codexBin: string | null },
): AsyncGenerator<readonly Finding[]> {
  await using bench = await openBench(world)
  yield* makeChecks(bench, options)
}

/** Makes all checks, and tells what each has found as soon as it and those before it have ended. */
async function* makeChecks(
  bench: Bench,
  options: { directory: string; codexBin: string | null },
): AsyncGenerator<readonly Finding[]> {
  const { world } = bench
  const deadline = world.clock.monotonic() + ANSWERS_MS
  yield await bench.look('node', LOOK_MS, () => checkNode(world))
  const place = await bench.check('directory', LOOK_MS, () => checkDirectory(options.directory))
  yield place.findings
  const directory = place.value
  const settings = await bench.check('settings', LOOK_MS, () =>
    checkSettings(world, directory ?? bench.temporary, options.codexBin),
  )
  yield settings.findings

  const started = [
    bench.look('records', LOOK_MS, () => checkRecords(world, directory)),
    bench.look('disk', LOOK_MS, () => checkDisk([options.directory, recordsRoot(world)])),
    bench.look('leftovers', LOOK_MS, () => checkLeftovers(world)),
    directory === null ? [] : bench.look('git', LOOK_MS, () => checkGit(bench, directory)),
  ]
  const codex = settings.value && checkCodex(bench, settings.value, directory ?? bench.temporary, deadline)
  for (const each of started) yield await each
  if (codex) yield await codex
}

/** Each goes by the one before it, so the first problem is the last. */
async function checkCodex(
  bench: Bench,
  inUse: SettingsInUse,
  directory: string,
  deadline: number,
): Promise<readonly Finding[]> {
  const binary = await bench.check('codex', FIND_MS, () => checkBinary(bench, inUse))
  if (binary.value === null) return binary.findings
  const home = await bench.check('codex-home', LOOK_MS, () => checkHome(bench, inUse.settings.codexHome))
  const found = [...binary.findings, ...home.findings]
  if (home.value === null) return found

  const { settings } = inUse
  const { model, effort, sandbox, network } = settings
  const choice: SandboxChoice = { mode: sandbox, network, writable: [] }
  const terms = sandboxTerms(directory, choice, capabilitiesOf(binary.value.version))
  const thread = threadStartParams(directory, { agent: 'doctor', developerInstructions: '', model, effort }, terms)
  const answers = await askCodex(bench, {
    path: binary.value.path,
    env: shieldEnvironment(home.value.env, directory, choice).env,
    // Of such a thread codex keeps nothing.
    threadStart: { ...thread, ephemeral: true },
    deadline,
  })
  if ('failure' in answers) {
    const mend = 'Run `codex` once by hand to see what ails it, or name another one with --codex-bin.'
    return [...found, problem('codex', `codex app-server does not come up: ${answers.failure}`, mend)]
  }
  const asked = { codex: binary.value, home: home.value, settings, platform: bench.world.platform }
  return [...found, ...findingsOf(answers, asked)]
}
