import type { SandboxChoice } from '../../core/shapes/sandbox.ts'
import { sandboxTerms, shieldEnvironment } from '../../engines/codex/sandbox.ts'
import { threadStartParams } from '../../engines/codex/thread-start.ts'
import { anyRootOf, recordsAround } from '../../session/records/records.ts'
import { readRunner } from '../../session/records/run-lock.ts'
import type { Finding } from '../../tell/words/doctor.ts'
import { findRepository } from '../../workspace/git/git.ts'
import { writableGit } from '../engine-of-project.ts'
import { lookAtEngines } from '../look-at-engines.ts'
import type { World } from '../world.ts'
import {
  type CheckRun,
  checkDirectory,
  checkDisk,
  checkGit,
  checkLeftovers,
  checkNode,
  checkProviders,
  checkRecords,
  checkSettings,
  checkSleep,
  type OnLate,
  openCheckRun,
  problem,
  type SettingsInUse,
} from './checks.ts'
import { askCodex, checkBinary, checkHome, findingsOf } from './codex.ts'

/** Longer than any check takes on a healthy machine, in ms. */
const LOOK_MS = 3_000
/** Bound for the providers, in ms; each one gets 3 s to answer. */
const ASK_MS = 5_000
/** Bound for `codex --version` on a busy machine, in ms. */
const FIND_MS = 5_000
/** Bound for another maker's agent to begin a session, in ms: some load for 15 s. */
const BEGIN_MS = 45_000
/** From the start to codex's last answer when idle, in ms. If the network drops all packets, its models take 10 s. */
const ANSWERS_MS = 12_000

/**
 * Checks in `directory` whether everything that a run needs exists and works. Yields the findings of each check in order, as
 * soon as it and all earlier ones have ended. All its processes have ended when it returns.
 * @param options `onLate` receives each check that has no answer yet
 */
export async function* examine(
  world: World,
  options: { directory: string; codexBin: string | null; onLate: OnLate },
): AsyncGenerator<readonly Finding[]> {
  await using run = await openCheckRun(world, options.onLate)
  const deadline = world.clock.monotonic() + ANSWERS_MS * run.stretch()
  yield await run.look('node', LOOK_MS, () => checkNode(world))
  const place = await run.check('directory', LOOK_MS, () => checkDirectory(options.directory))
  yield place.findings
  const directory = place.value
  const settings = await run.check('settings', LOOK_MS, () =>
    checkSettings(world, directory ?? run.temporary, options.codexBin),
  )
  yield settings.findings

  const started = [
    run.look('records', LOOK_MS, () => checkRecords(world, directory)),
    run.look('disk', LOOK_MS, () => checkDisk([options.directory, anyRootOf(world)])),
    run.look('leftovers', LOOK_MS, () => checkLeftovers(world)),
    run.look('node', ASK_MS, () => checkSleep(world, directory ?? run.temporary)),
    directory === null ? [] : run.look('git', LOOK_MS, () => checkGit(run, directory)),
  ]
  const codex = settings.value ? checkCodex(run, settings.value, directory ?? run.temporary, deadline) : null
  const inUse = settings.value
  const providers = inUse === null ? null : run.look('provider', ASK_MS, () => checkProviders(world, inUse))
  const engine =
    inUse === null || inUse.engines.length === 0
      ? null
      : run.look('engine', BEGIN_MS, () => lookAtEngines(world, options.directory, inUse.engines))
  for (const each of started) yield await each
  if (codex !== null) yield await codex
  if (providers !== null) yield await providers
  if (engine !== null) yield await engine
}

async function isAtWork(world: World, directory: string): Promise<boolean> {
  const around = await recordsAround({ ...world, directory })
  const runners = await Promise.all(around.map(({ lock }) => readRunner(lock, world.platform)))
  return runners.some(each => each !== null)
}

/** Each check needs the one before it, so the first problem ends the list. */
async function checkCodex(
  run: CheckRun,
  inUse: SettingsInUse,
  directory: string,
  deadline: number,
): Promise<readonly Finding[]> {
  const binary = await run.check('codex', FIND_MS, () => checkBinary(run, inUse, directory))
  if (binary.value === null) return binary.findings
  const home = await run.check('codex-home', LOOK_MS, () => checkHome(run, inUse.settings.codexHome))
  const found = [...binary.findings, ...home.findings]
  if (home.value === null) return found

  const { settings } = inUse
  const { model, effort, sandbox, network } = settings
  const writable = writableGit(directory, await findRepository(directory))
  const choice: SandboxChoice = { mode: sandbox, network, writable }
  const terms = sandboxTerms(directory, choice)
  const thread = threadStartParams(directory, { agent: 'doctor', developerInstructions: '', model, effort }, terms)
  const question = askCodex(run, {
    path: binary.value.path,
    env: shieldEnvironment(home.value.env, directory, choice).env,
    // Codex stores nothing of an ephemeral thread.
    threadStart: { ...thread, ephemeral: true },
    // If two sandboxes start at once in a directory, one may fail: do not disturb a running session.
    place: (await isAtWork(run.world, directory)) ? null : { directory, sandbox: choice, platform: run.world.platform },
    deadline,
  })
  const answers = await run.waitFor('codex', ASK_MS, question)
  if ('failure' in answers) {
    const mend = 'Run `codex` by hand to see its error, or give another one with --codex-bin.'
    return [...found, problem('codex', `codex app-server does not start: ${answers.failure}`, mend)]
  }
  const asked = { codex: binary.value, home: home.value, settings, platform: run.world.platform }
  return [...found, ...findingsOf(answers, asked)]
}
