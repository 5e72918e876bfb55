import * as v from 'valibot'
import { readSession, readStatus } from '../../../project/watch/status.ts'
import { AWAITED, waitForSession } from '../../../project/watch/wait-for.ts'
import { placesAround } from '../../../project/worktrees/find.ts'
import { lockOfSession } from '../../../session/records/journal.ts'
import { openQueue } from '../../../session/records/queue.ts'
import { askWhoRuns } from '../../../session/records/run-lock.ts'
import { describeOutcome } from '../../../tell/words/outcome.ts'
import { type PlaceReport, type SessionReport, stateInWords, statusLines } from '../../../tell/words/status.ts'
import type { FoundSession } from '../places.ts'
import {
  aCount,
  type Call,
  clipped,
  defineTool,
  directory,
  MOST_SECONDS,
  seconds,
  session,
  type Tool,
} from '../tool.ts'

const MOST_GOAL = 2_000
const MOST_BESIDE = 20

const sessionShape = v.object({
  id: v.string(),
  goal: v.string(),
  standing: v.pipe(
    v.picklist(['running', 'ended', 'cut-off', 'unknown']),
    v.description('cut-off: it stopped without an end, and can be resumed'),
  ),
  state: v.pipe(v.string(), v.description('what it does now, or how it ended, in words')),
  outcome: v.pipe(
    v.nullable(v.string()),
    v.description('the kind of its end, such as done, limit-reached or needs-person; null: it has not ended'),
  ),
  round: v.pipe(v.nullable(v.number()), v.description('the round that runs; null between two')),
  rounds_used: v.number(),
  tokens: v.number(),
  elapsed_seconds: v.number(),
  tasks: v.nullable(v.object({ done: v.number(), total: v.number() })),
  decision: v.pipe(
    v.nullable(v.string()),
    v.description('the decision that it waits for; questions has the choices, answer decides'),
  ),
  questions: v.pipe(v.number(), v.description('how many questions it has noted for a person, answered or not')),
  last: v.pipe(v.nullable(v.string()), v.description('the last thing that happened')),
})

/** How sessions are, and what comes of them. */
export const lookTools: readonly Tool[] = [
  defineTool({
    name: 'status',
    description: 'Shows the running session of a directory, or its last one, its progress, and its queue.',
    effect: 'none',
    input: v.strictObject({ directory, session }),
    output: v.object({
      directory: v.string(),
      runs: v.pipe(v.boolean(), v.description('whether codemachine runs there')),
      session: v.nullable(sessionShape),
      queued: v.number(),
      beside: v.pipe(
        v.array(
          v.object({ directory: v.string(), worktree: v.nullable(v.string()), session: v.nullable(sessionShape) }),
        ),
        v.description('its worktrees, if it is a checkout; with --fleet also the newest sessions of the fleet'),
      ),
      words: v.pipe(v.string(), v.description('the same as text for a person')),
    }),
    async run(given, call) {
      if (given.session !== undefined) return await statusOfSession(given, call, given.session)
      const records = await call.places.recordsOf(given.directory)
      const places = await placesAround(records, () => {})
      const report = await readStatus(call.world, places, () => {})
      const elsewhere = [...report.elsewhere.slice(0, MOST_BESIDE), ...(await ofFleet(call))]
      return {
        directory: report.directory,
        runs: report.runner !== null,
        session: report.session && short(report.session, call),
        queued: report.queued,
        beside: elsewhere.map(each => {
          return {
            directory: each.directory,
            worktree: each.worktree,
            session: each.session && short(each.session, call),
          }
        }),
        words: statusLines(report, call.world.clock.now()).join('\n'),
      }
    },
  }),
  defineTool({
    name: 'wait_for',
    description: `Waits, at most ${MOST_SECONDS} seconds a call, until a session ends, needs a person or ends a round. Pass its seen to the next call.`,
    effect: 'none',
    input: v.strictObject({
      directory,
      session,
      until: v.optional(
        v.pipe(
          v.array(v.picklist(['ended', ...AWAITED])),
          v.description(
            'a list of "ended", "needs-person" and "round"; left out: "ended" and "needs-person". its end always returns',
          ),
        ),
      ),
      seen: v.optional(
        aCount(
          'a whole number from 0 on, `seen` of the call before: only later events return; left out: the call also returns at once if one is already true',
          0,
        ),
      ),
      seconds,
    }),
    output: v.object({
      happened: v.pipe(
        v.picklist(['ended', 'cut-off', 'needs-person', 'round', 'nothing']),
        v.description('nothing: the wait is over, and the session continues'),
      ),
      words: v.string(),
      seen: v.pipe(v.number(), v.description('for the next wait')),
      directory: v.string(),
      session: v.nullable(sessionShape),
    }),
    async run({ until = ['needs-person'], seen = null, seconds: most = MOST_SECONDS, ...given }, call) {
      const found = await call.places.session(given.directory, given.session)
      const { records, id } = found
      const wanted = new Set(AWAITED.filter(each => until.includes(each)))
      call.progress(`waits for ${id}`)
      const happened = await waitForSession(call.world, {
        records,
        id,
        wanted,
        seen,
        mostMs: most * 1000,
        signal: call.signal,
      })
      const report = await reportOf(found, call)
      const shown = report && short(report, call)
      const words = happened.words === '' && happened.what === 'ended' ? (shown?.state ?? '') : happened.words
      return { happened: happened.what, words, seen: happened.seen, directory: records.directory, session: shown }
    },
  }),
]

/** How the newest sessions of the fleet are that is shown; none where it is not. */
async function ofFleet(call: Call): Promise<PlaceReport[]> {
  const reports: PlaceReport[] = []
  for (const copy of await call.places.copies(MOST_BESIDE)) {
    const records = await call.places.recordsOf(copy)
    reports.push(await readStatus(call.world, [{ worktree: null, records }], () => {}))
  }
  return reports
}

async function statusOfSession({ directory: where }: { directory?: string | undefined }, call: Call, wanted: string) {
  const found = await call.places.session(where, wanted)
  const report = await reportOf(found, call)
  const { records, worktree, id } = found
  const runner = await askWhoRuns(records.lock, call.world.platform, () => {})
  const shown = report && short(report, call)
  return {
    directory: records.directory,
    runs: runner !== null,
    session: shown,
    queued: (await openQueue(records.queue).list()).prompts.length,
    beside: [],
    words: `${id}${worktree === null ? '' : ` in the worktree ${worktree}`}: ${shown?.state ?? 'its journal does not name its goal'}`,
  }
}

async function reportOf({ records, id }: FoundSession, { world }: Call): Promise<SessionReport | null> {
  const runner = await askWhoRuns(await lockOfSession(records, id), world.platform, () => {})
  return await readSession(records, id, runner, world)
}

function short(report: SessionReport, call: Call): v.InferOutput<typeof sessionShape> {
  const { outcome, tasks, decision, last } = report
  return {
    id: report.id,
    goal: clipped(call, report.goal, MOST_GOAL),
    standing: report.standing,
    state: outcome === null ? stateInWords(report, call.world.clock.now()) : describeOutcome(outcome).text,
    outcome: outcome?.kind ?? null,
    round: report.round?.round ?? null,
    rounds_used: report.roundsUsed,
    tokens: report.tokens,
    elapsed_seconds: Math.round(report.elapsedMs / 1000),
    tasks: tasks && { done: tasks.done, total: tasks.total },
    decision: decision && clipped(call, decision.title),
    questions: report.questions,
    last: last && clipped(call, last.text),
  }
}
