import { hostname } from 'node:os'
import { resolve } from 'node:path'
import { findSession } from '../../app/find.ts'
import { openRun, refuseHiddenGates, settingsOf } from '../../app/project.ts'
import { flagsAtResume, gatesAtResume, limitsAtResume, newerBuild, reviewAtResume } from '../../app/resume.ts'
import type { RunFlags } from '../../app/run-flags.ts'
import { type Start, type WorkedThrough, workThrough } from '../../app/work-through.ts'
import type { CliContext } from '../../app/world.ts'
import { UserError } from '../../base/errors.ts'
import type { SessionState } from '../../core/state/state.ts'
import { countRubbish, foldJournal, problemOfJournal } from '../../records/journal.ts'
import { openQueue } from '../../records/queue.ts'
import { openRecords, type Records } from '../../records/records.ts'
import { resumeCommand } from '../../words/commands.ts'
import { formatCount } from '../../words/numbers.ts'
import { wantsScreen } from '../flags.ts'

/** `codemachine resume`: goes on with a session that has not come to its end, then with what waits. */
export async function resume(context: CliContext, wanted: string | null, flags: RunFlags): Promise<number> {
  if (wantsScreen(context, flags)) {
    const { runOnScreen } = await import('../../tui/host/screen-home.ts')
    return await runOnScreen(context, flags, inner => resume(inner, wanted, flags))
  }
  const records = await openRecords({ ...context, directory: resolve(context.cwd, flags.cd ?? '.') })
  const id = wanted === null ? await newestUnfinished(records) : await findSession(records, wanted)
  const before = await readSession(records, id)

  if (flags.config === undefined) refuseHiddenOverrides(before)
  const { exitCode, goesOn } = await resumeAlone(context, records, before, flags)
  if (!goesOn || (await openQueue(records.queue).peek()) === null) return exitCode
  // What waits was never given the rights that this session was begun with.
  await using opened = await openRun(context, flags)
  const rest = await workThrough(context, opened, { first: null, flags, resumable: true })
  return rest.isBrokenOff ? rest.exitCode : exitCode || rest.exitCode
}

async function resumeAlone(
  context: CliContext,
  records: Records,
  before: SessionState,
  flags: RunFlags,
): Promise<WorkedThrough> {
  const { id, said, overrides } = before
  const allFlags = flagsAtResume(said, overrides, flags)
  if (before.ended?.outcome.kind !== 'done') {
    // Before anything is made or begun.
    await refuseOldPlan(records, before)
    limitsAtResume(before, flags, (await settingsOf(context, records.directory, allFlags)).settings)
  }
  await using opened = await openRun(context, allFlags)
  // Read once more: until the lock was taken, another codemachine may have worked on it.
  const state = await readSession(records, id)
  if (state.ended?.outcome.kind === 'done') throw new UserError(`${id} is done, so there is nothing to go on with.`)
  await refuseOldPlan(records, state)
  const limits = limitsAtResume(state, flags, opened.settings)
  opened.remarks.push(...remarksOnHost(state), ...(await remarksOnJournal(records, id)))
  const gates = gatesAtResume(
    {
      journaled: state.gates,
      loaded: opened.gates,
      verify: opened.said.verify ?? [],
      reread: flags.rereadGates ?? false,
    },
    opened.settings,
  )
  refuseHiddenGates(id, gates)
  const review = reviewAtResume({ ...opened, journaled: state.review, reread: flags.rereadGates ?? false })
  const first: Start = sessions => sessions.resume(state, limits, gates, review)
  return await workThrough(context, opened, { first, alone: true, flags, resumable: true })
}

async function newestUnfinished(records: Records): Promise<string> {
  const ids = await records.sessions()
  let hasBuild = false
  for (const id of [...ids].reverse()) {
    const problem = await problemOfJournal(records.journal(id))
    if (problem !== null) {
      const hint = 'To go on with another session, name it; codemachine list shows them.'
      throw new UserError(problem, ids.length > 1 ? { hint } : {})
    }
    const state = await foldJournal(records.journal(id), id)
    if (state === null) continue
    const isOld = hasBuild && state.template === 'build'
    if (state.ended?.outcome.kind !== 'done' && !isOld) return id
    hasBuild ||= state.template === 'build'
  }
  throw new UserError(`There is no session in ${records.directory} that could be gone on with.`, {
    hint: 'Start one: codemachine "…"',
  })
}

/** The plan of a build is set aside when another one begins. */
async function refuseOldPlan(records: Records, state: SessionState): Promise<void> {
  const newer = await newerBuild(records, state)
  if (newer === null) return
  throw new UserError(
    `${state.id} cannot be gone on with: a newer build, ${newer}, has its own plan since, and codemachine start plans what is missing.`,
  )
}

/** What a session has come to; a `UserError` if that cannot be known, or it is one of another work directory. */
async function readSession(records: Records, id: string): Promise<SessionState> {
  const path = records.journal(id)
  const state = await foldJournal(path, id)
  if (state === null) throw new UserError(`${path} does not say what ${id} is about, so it cannot be gone on with.`)
  if (state.directory === records.directory) return state
  throw new UserError(`${id} belongs to ${state.directory}, and this is ${records.directory}.`, {
    hint: `To go on with it there: ${resumeCommand(id, state.directory)}`,
  })
}

/** Secrets are not kept: where one was handed to codex, a person has to say it again. */
function refuseHiddenOverrides({ id, overrides }: SessionState): void {
  const hidden = overrides.find(pair => pair.includes('[secret '))
  if (hidden === undefined) return
  throw new UserError(`${id} began with -c ${hidden}, and what is secret in it is not kept; say each -c again.`)
}

async function remarksOnJournal(records: Records, id: string): Promise<string[]> {
  const rubbish = await countRubbish(records.journal(id))
  if (rubbish === 0) return []
  const lines = formatCount(rubbish, 'line')
  return [`${lines} of ${records.journal(id)} cannot be read, and what stood there is lost; all else of it counts.`]
}

function remarksOnHost({ host }: SessionState): string[] {
  const here = hostname()
  return host === '' || host === here
    ? []
    : [`This session ran on another machine (${host}); it goes on here, on ${here}.`]
}
