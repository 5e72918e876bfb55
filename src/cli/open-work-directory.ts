import { Cleanup } from '../base/cleanup.ts'
import { outputFiles } from '../platform/output-files.ts'
import type { Records } from '../session/records.ts'
import { takeRunLock } from '../session/run-lock.ts'
import { type FingerprintOptions, type Fingerprints, openFingerprints } from '../workspace/fingerprint.ts'
import { findRepository, type PersonRepository } from '../workspace/person-repository.ts'
import { restoreAfterCrash } from '../workspace/repository-guard.ts'
import type { CliContext } from './context.ts'
import { describeRestored, endWhatWasLeft } from './remarks.ts'

/** A work directory that nobody else works in until this is disposed of. */
export interface OpenWorkDirectory extends AsyncDisposable {
  repository: PersonRepository | null
  fingerprints: Fingerprints
}

/**
 * Takes the lock of the run, ends and puts right what a run that was cut off has left, and opens the fingerprints. A
 * `UserError` with exit code 6 while somebody runs here.
 * @param onRemark told what a person should know, a sentence each; later, too
 * @param hint what they can do while somebody runs here; left out: have a goal wait
 */
export async function openWorkDirectory(
  context: CliContext,
  records: Records,
  onRemark: (remark: string) => void,
  hint?: string,
): Promise<OpenWorkDirectory> {
  await using opened = new Cleanup()
  const { platform, pid, clock } = context
  const now = new Date(clock.now())
  opened.use(await takeRunLock(records.lock, { platform, pid, now, ...(hint === undefined ? {} : { hint }) }))
  for (const remark of await endWhatWasLeft(context, records)) onRemark(remark)
  for (const remark of describeRestored(await restoreAfterCrash(records.guard))) onRemark(remark)
  const options = await fingerprintOptions(context, records, onRemark)
  const fingerprints = await openFingerprints(options)
  const held = opened.move()
  return {
    repository: options.repository,
    fingerprints,
    [Symbol.asyncDispose]: () => held[Symbol.asyncDispose](),
  }
}

/** With what the fingerprints of a work directory are opened, or looked at. */
export async function fingerprintOptions(
  { env, platform }: CliContext,
  { git, directory, root }: Records,
  onWarning: (warning: string) => void,
): Promise<FingerprintOptions> {
  return {
    gitDir: git,
    directory,
    repository: await findRepository(directory),
    env,
    // What codemachine prints into the work directory is no work of an agent's.
    leaveOut: [root, ...(await outputFiles(platform))],
    onWarning,
  }
}

/** For what is no goal. */
export const WAIT_FOR_ITS_END =
  'Wait for its end, or end it with codemachine stop; codemachine status shows what it does.'
