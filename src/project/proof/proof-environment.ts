import { UserError } from '../../base/errors.ts'
import { loadPrompt } from '../../base/package.ts'
import { fillPlaceholders } from '../../base/text.ts'
import type { ThreadSpec } from '../../core/engine.ts'
import type { Gate } from '../../core/events/outcome.ts'
import type { ProveTerms } from '../../core/rules/contract.ts'
import { readOnlyHome } from '../../core/rules/notices.ts'
import type { SessionState } from '../../core/state/state.ts'
import { searchedFolders } from '../../platform/run-process.ts'
import type { ProofEnvironment } from '../../session/options.ts'
import { protectedSince } from '../../session/proof/proof.ts'
import { reviewInput } from '../../session/proof/review-input.ts'
import { runGate } from '../../session/proof/run-gate.ts'
import { namedModel } from '../../session/providers/round-providers.ts'
import { workChanges } from '../../workspace/gate-paths.ts'
import { changedFiles } from '../../workspace/git/trees.ts'
import { programReader } from '../../workspace/programs.ts'
import { gateConfiguration, protectedChanges } from '../../workspace/protected-files.ts'
import { testsInReports } from '../../workspace/test-reports.ts'
import type { Run } from '../open-run.ts'
import { reachesNetwork } from '../settings/gates.ts'
import type { World } from '../world.ts'
import { runCheck, tryControl } from './contract-checks.ts'
import { counterProofOf } from './counter-proof.ts'
import { onEngine, reviewThread } from './review.ts'

/** Most bytes of a diff that are read before it is cut for a reviewer. */
const DIFF_BYTES = 8 * 1024 * 1024

/** Longest stored output of a template's command. */
const COMMAND_CHARACTERS = 16_000

/**
 * Returns the means to prove the claims of a run's sessions.
 * @param closed absolute paths that no command may read or create, as of now
 */
export function proofEnvironment(
  { clock, home, env, platform }: World,
  run: Run,
  deniedPaths: () => readonly string[],
): ProofEnvironment {
  const { commands, fingerprints, savepoints, redactor, settings, records } = run
  const changedProtected: ProofEnvironment['changedProtected'] = (gates, before, after) =>
    fingerprints.mending(git => protectedChanges({ gates, before, after, git }))
  const { directory } = records
  const searched = searchedFolders(env, platform).map(({ folder }) => folder)
  const programsNow = programReader(directory, searched)
  const onGates = () => ({
    door: commands,
    redact: (text: string) => redactor.text(text),
    explain: (output: string) => readOnlyHome(output, { home, directory }),
    testsInReports: (run: string, since: number) => testsInReports(directory, run, since),
    unreadable: deniedPaths(),
  })
  const onCopies = () => ({
    fingerprints,
    key: records.key,
    commands: run.commandOptions,
    redact: (text: string) => redactor.text(text),
    unreadable: deniedPaths(),
  })
  return {
    // Flakiness only matters if it decides.
    runGate: (gate, { when, start, hasPassedAtStart, ...place }) => {
      // The rounds may have less access than when the scope began.
      const network = gate.network && reachesNetwork(settings)
      const isFlakyByWork = async () =>
        !hasPassedAtStart || (await isGateChanged(fingerprints, { start, tree: place.tree, gate }))
      return runGate(
        { ...gate, network },
        { ...onGates(), ...place, isAgainOnFailure: when === 'claim', isFlakyByWork },
      )
    },
    runCommand: ({ readOnly, ...command }, place) =>
      runGate(
        { ...command, required: false, protect: [], everyRound: false },
        { ...onGates(), ...place, isAgainOnFailure: false, mostCharacters: COMMAND_CHARACTERS, readOnly },
      ),
    async keepSavepoint(of) {
      const notLookedAt = fingerprints.leftOut()
      const kept = await savepoints.keep({ ...of, at: clock.now() })
      return kept && { ...kept, ...(notLookedAt.count === 0 ? {} : { notLookedAt }) }
    },
    changedProtected,
    configuration: async (gates, before, after, programs) => {
      const both = { before: programs, after: await programsNow() }
      return await fingerprints.mending(git => gateConfiguration({ gates, before, after, git, programs: both }))
    },
    counterProof: (gate, of) =>
      counterProofOf({ ...gate, network: gate.network && reachesNetwork(settings) }, of, onCopies()),
    programs: programsNow,
    async lost(before, after) {
      const files = await fingerprints.mending(git => changedFiles(git, before, after))
      return files?.filter(({ how }) => how !== 'added').map(({ path }) => path) ?? null
    },
    contractThread: (role, terms) => contractThread(role, terms, run),
    runCheck: (of, on) => runCheck(of, on, onCopies()),
    tryControl: (sentence, control, on) => tryControl(sentence, control, on, onCopies()),
    reviewer: async (state, tree) =>
      await reviewerOf(run, state, {
        tree,
        changed: await changedProtected(state.gates, protectedSince(state) ?? '', tree),
      }),
  }
}

/** Returns the thread that writes the contract, or wrong versions. It is read-only; codex stores nothing of it. */
function contractThread(
  role: 'author' | 'control',
  { author, control, controls, authorEngine, controlEngine }: ProveTerms,
  { records: { directory }, settings, providers }: Run,
): ThreadSpec {
  const isSameEngine = role === 'author' || controlEngine == null || controlEngine === authorEngine
  const name = (role === 'control' ? control : null) ?? (isSameEngine ? author : null)
  const engine = (role === 'control' ? controlEngine : null) ?? authorEngine
  // The providers are those of the engine of the rounds.
  const named = name === null || engine != null ? { model: name } : namedModel(name, providers.byName)
  const prompt = loadPrompt(role === 'author' ? 'contract' : 'control')
  return {
    agent: role,
    developerInstructions: fillPlaceholders(prompt, {
      directory,
      ...(role === 'control' ? { most: String(controls) } : {}),
    }),
    ...onEngine(engine, { model: named.model, effort: null }, settings),
    ...(named.provider === undefined ? {} : named),
    readOnly: true,
    ephemeral: true,
  }
}

/** Chooses the reviewer of a claim and its material. */
async function reviewerOf(
  { savepoints, settings, records }: Run,
  state: SessionState,
  { tree, changed }: { tree: string; changed: Awaited<ReturnType<typeof protectedChanges>> },
): ReturnType<ProofEnvironment['reviewer']> {
  const start = state.scope?.since ?? state.savepoint?.start ?? null
  const diff = start === null ? null : await diffSince(savepoints, start, tree)
  return {
    thread: reviewThread(records.directory, state.review ?? settings.reviewer, settings),
    input: reviewInput({
      goal: state.scope?.goal ?? state.goal,
      said: state.personSaid,
      gates: state.claim.state === 'nominated' ? state.claim.results : [],
      protectedFiles: changed.files,
      configuration: state.gateConfiguration?.files ?? [],
      counterProofs: state.counterProofs.filter(proof => proof.tree === tree),
      earlier: state.reviews.last?.findings ?? [],
      diff: diff?.text ?? null,
      isCut: diff?.isCut ?? false,
    }),
  }
}

/** Null if the files at its start are no longer stored. */
async function diffSince(savepoints: Run['savepoints'], start: string, tree: string) {
  try {
    return await savepoints.diff(start, tree, { mostBytes: DIFF_BYTES })
  } catch (error) {
    if (error instanceof UserError) return null
    throw error
  }
}

/** Returns whether the work changed a file that a gate runs; true if the start is unknown. */
async function isGateChanged(
  fingerprints: Run['fingerprints'],
  { start, ...of }: { start: string | null; tree: string; gate: Gate },
): Promise<boolean> {
  if (start === null) return true
  const changes = await fingerprints.mending(git => workChanges(git, { start, ...of }))
  return 'problem' in changes || changes.some(({ isRunThrough }) => isRunThrough)
}
