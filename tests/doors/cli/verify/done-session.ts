import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { PassThrough } from 'node:stream'
import type { SessionEvent } from '../../../../src/core/events/events.ts'
import type { Gate } from '../../../../src/core/events/outcome.ts'
import { certificateOf, certificateText } from '../../../../src/core/rules/certificate.ts'
import { globsLookedAt } from '../../../../src/core/rules/proof/gate-files.ts'
import { emptyState } from '../../../../src/core/state/state.ts'
import { verify } from '../../../../src/doors/cli/commands/verify.ts'
import type { CliContext } from '../../../../src/doors/screen/cli-context.ts'
import { openJournal } from '../../../../src/session/records/journal.ts'
import { openRecords, type Records } from '../../../../src/session/records/records.ts'
import { openFingerprints } from '../../../../src/workspace/fingerprint/fingerprint.ts'
import { isFullyCommitted } from '../../../../src/workspace/git/commits.ts'
import { findRepository, readHead } from '../../../../src/workspace/git/git.ts'
import { openSavepoints } from '../../../../src/workspace/savepoints/savepoint-writer.ts'
import { cliContext } from '../../../support/cli-context.ts'
import type { TestPlace } from '../../../support/place.ts'
import { fold } from '../../../support/session-events.ts'
import { recorded, sampleEvents } from '../../screen/samples.ts'

const SESSION = '20261121_1'

/** What a person sees of `codemachine verify`. */
export interface Verified {
  exitCode: number
  stdout: string
  stderr: string
  /** What `--json` printed. */
  answer(): { verdict: unknown }
}

/** A gate that is a line of shell. */
export function gate(run: string, name = run): Gate {
  return { name, run, timeoutMs: 20_000, required: true, network: false, protect: [], everyRound: false }
}

/** Keeps what there is in `directory` as a session that is done, proved by gates that passed. */
export async function endSession(
  place: TestPlace,
  gates: readonly Gate[],
  { directory = place.directory, sandbox }: { directory?: string; sandbox?: 'danger-full-access' } = {},
): Promise<Records> {
  const records = await openRecords({ ...contextOf(place, directory), directory })
  const repository = await findRepository(directory)
  const fingerprints = await openFingerprints({
    gitDir: records.git,
    directory: records.directory,
    repository,
    env: place.env,
  })
  fingerprints.protect(globsLookedAt(gates))
  const tree = await fingerprints.take()
  await using savepoints = openSavepoints(fingerprints)
  const kept = await savepoints.keep({ session: SESSION, round: 1, tree, at: 0 })
  const verified = gates.some(each => each.required)
  const head = repository === null ? null : await readHead(repository)
  const events: SessionEvent[] = [
    { ...sampleEvents['session-created'], directory: records.directory, gates, ...(sandbox ? { sandbox } : {}) },
    { type: 'done-nominated', round: 1, by: ['MAIN.md'], tree },
    ...gates.map(
      (each): SessionEvent => ({
        type: 'gate-ended',
        round: 1,
        when: 'claim',
        gate: each.name,
        status: 'passed',
        exitCode: 0,
        durationMs: 1,
        output: '',
        problem: null,
        tree,
        changed: [],
        changedCount: 0,
      }),
    ),
    { type: 'done-accepted', round: 1, tree, verified },
    { ...sampleEvents['session-ended'], outcome: { kind: 'done', verified }, exitCode: 0 },
  ]
  await mkdir(records.sessionFolder(SESSION), { recursive: true })
  await using journal = openJournal(records.journal(SESSION))
  let state = emptyState(SESSION)
  for (const event of recorded(events, SESSION)) {
    journal.append(event)
    state = fold(state, event)
  }
  const certificate = certificateOf(state, {
    head,
    headHoldsAll: head?.commit ? await isFullyCommitted(fingerprints.git, head.commit, tree) : null,
    savepoint: kept?.commit ?? null,
    notLookedAt: fingerprints.leftOut(),
    digestOf: () => '',
    versions: { codemachine: '0', codex: null, node: '0', platform: 'linux' },
  })
  await writeFile(join(records.sessionFolder(SESSION), 'done.json'), certificateText(certificate))
  const copy = join(records.directory, '.codemachine', 'projects', SESSION)
  await mkdir(copy, { recursive: true })
  await writeFile(join(records.directory, '.codemachine', '.gitignore'), '*\n')
  await writeFile(join(copy, 'done.json'), certificateText(certificate))
  return records
}

/** Runs `codemachine verify` to its end, in this process. */
export async function runVerify(
  place: TestPlace,
  options: { json?: boolean; directory?: string; signal?: AbortSignal; codexBin?: string } = {},
): Promise<Verified> {
  const { directory = place.directory, json = true, signal, codexBin } = options
  const context = contextOf(place, directory, signal)
  const [stdout, stderr] = [keep(context.stdout), keep(context.stderr)]
  const exitCode = await verify(context, undefined, { cd: directory, json, ...(codexBin ? { codexBin } : {}) })
  return { exitCode, stdout: stdout(), stderr: stderr(), answer: () => JSON.parse(stdout()) }
}

function contextOf(place: TestPlace, cwd: string, signal = new AbortController().signal): CliContext {
  return cliContext(place, { cwd, signal })
}

function keep(stream: NodeJS.WritableStream): () => string {
  let text = ''
  ;(stream as PassThrough).setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
  })
  return () => text
}
