import { withoutUndefined } from '../../base/json.ts'
import type { RunOptions } from '../../project/library.ts'
import type { RunListeners } from '../../project/open-run.ts'
import { flagValue } from '../../project/settings/load.ts'
import type { FlagKey } from '../../project/settings/schema.ts'
import type { WantedWorktree } from '../../project/start/worktree.ts'
import type { CliContext } from '../screen/cli-context.ts'
import type { RunFlags } from './flags.ts'

/** What the flags of a run say, in values; a `UserError` that names the flag for the first that cannot be read. */
export function runOptionsOf(flags: RunFlags): RunOptions {
  const {
    cd,
    rounds,
    maxTime,
    maxTokens,
    maxCost,
    maxUsage,
    maxWait,
    model,
    effort,
    provider,
    engine,
    fallback,
    sandbox,
    yolo,
    publish,
  } = flags
  const { network, keepAwake, review, prove, requireProof, contractOnly, verify, config, codexBin } = flags
  return withoutUndefined({
    directory: cd,
    rounds: read('rounds', rounds),
    maxTimeMs: read('maxTime', maxTime),
    maxTokens: read('maxTokens', maxTokens),
    maxCost: read('maxCost', maxCost),
    maxUsage: read('maxUsage', maxUsage),
    maxWaitMs: read('maxWait', maxWait),
    model: read('model', model),
    effort: read('effort', effort),
    provider: read('provider', provider),
    engine: read('engine', engine),
    fallback: read('fallback', fallback),
    sandbox: yolo ? 'danger-full-access' : read('sandbox', sandbox),
    network: yolo ?? network,
    // Commander says true where nobody said anything.
    keepAwake: keepAwake === false ? false : undefined,
    publish: read('publish', publish),
    review,
    prove,
    requireProof,
    contractOnly,
    verify,
    config,
    codexBin: read('codexBin', codexBin),
  })
}

function read<Key extends FlagKey>(key: Key, text: string | undefined): ReturnType<typeof flagValue<Key>> | undefined {
  return text === undefined ? undefined : flagValue(key, text)
}

/** The worktree that `--worktree` asks for; null if it does not. */
export function worktreeOf(flags: RunFlags): WantedWorktree | null {
  const { worktree } = flags
  if (worktree === undefined) return null
  return { ...runOptionsOf(flags), name: worktree === true ? null : worktree }
}

/** How a run is shown. */
export type ShowFlags = Pick<RunFlags, 'plain' | 'json'>

/** Who is told, on this command line, what a run has to say beside its events. */
export function listenersOn(context: CliContext, { json }: ShowFlags): RunListeners {
  const { program, stdout, stderr, display } = context
  const terminal = display?.terminal ?? stdout
  return {
    // A bell has no place among lines of JSON.
    bell: terminal.isTTY && !json ? terminal : null,
    onProblem: sentence => void stderr.write(`${program}: ${sentence}\n`),
    onDebug: line => void stderr.write(`[debug] ${line}\n`),
  }
}
