import * as v from 'valibot'
import { nullIfUserError, UserError } from '../../../base/errors.ts'
import { OpenComparison } from '../../../project/diff/comparison.ts'
import { newestSessions, questionsOrNone } from '../../../project/find.ts'
import { OpenProject } from '../../../project/open-project.ts'
import { areSavepointsGone, lookAtSavepoints } from '../../../project/savepoints.ts'
import { readSession } from '../../../project/watch/status.ts'
import { placesAround } from '../../../project/worktrees/find.ts'
import { lockOfSession } from '../../../session/records/journal.ts'
import { questionId } from '../../../session/records/questions.ts'
import { askWhoRuns } from '../../../session/records/run-lock.ts'
import { commandsHere } from '../../../tell/report/commands.ts'
import { markdownOf } from '../../../tell/report/markdown.ts'
import { oneLine } from '../../../tell/words/safe-text.ts'
import type { FoundSession } from '../places.ts'
import {
  aCount,
  aName,
  type Call,
  clipped,
  defineTool,
  directory,
  offset,
  partOf,
  session,
  type Tool,
  textPart,
  yesOrNo,
} from '../tool.ts'

/** Of so many of the newest sessions questions are looked for where none is named. */
const NEWEST = 20
const MOST_QUESTIONS = 100
const MOST_WORDS = 4_000
const MOST_FILES = 300
const MOST_SAVEPOINTS = 300

const question = v.object({
  id: v.pipe(v.string(), v.description('the id for answer')),
  directory: v.string(),
  kind: v.pipe(
    v.picklist(['question', 'decision']),
    v.description('decision: the session waits for it; question: it continues with its assumption'),
  ),
  text: v.string(),
  options: v.pipe(
    v.array(v.object({ id: v.string(), text: v.string() })),
    v.description('the choices; empty: any text'),
  ),
  assumes: v.pipe(v.nullable(v.string()), v.description('what happens if nobody answers')),
  answer: v.nullable(v.string()),
})

/** The texts and lists of a session. */
export const readTools: readonly Tool[] = [
  defineTool({
    name: 'questions',
    description: 'Lists the questions of agents, and the decision that a session waits for.',
    effect: 'none',
    input: v.strictObject({
      directory,
      session,
      all: v.optional(yesOrNo('true or false: whether to list answered ones, too')),
    }),
    output: v.object({ questions: v.array(question), count: v.number() }),
    async run({ all = false, ...given }, call) {
      const found: v.InferOutput<typeof question>[] = []
      for (const each of await sessionsFor(given, call)) found.push(...(await askedIn(each, call)))
      const listed = found.filter(({ answer }) => all || answer === null)
      return { questions: listed.slice(-MOST_QUESTIONS), count: listed.length }
    },
  }),
  defineTool({
    name: 'report',
    description:
      'Gives the report of a session as Markdown: what was done, proved, refused and asked. It needs only the journal.',
    effect: 'none',
    input: v.strictObject({ directory, session, offset }),
    output: v.object({ session: v.string(), directory: v.string(), ...textPart }),
    async run({ offset: from, ...given }, call) {
      const found = await call.places.session(given.directory, given.session)
      return {
        session: found.id,
        directory: found.records.directory,
        ...partOf(call, await reportText(found, call), from),
      }
    },
  }),
  defineTool({
    name: 'diff',
    description: 'Lists the files that a session or a round changed, or shows the diff of one of them.',
    effect: 'none',
    input: v.strictObject({
      directory,
      session,
      round: v.optional(aCount('a whole number from 1 on: only what that round changed')),
      path: v.optional(aName('the path of a listed file, to get its diff')),
      offset,
    }),
    output: v.object({
      from: v.string(),
      to: v.string(),
      count: v.pipe(v.number(), v.description('how many files differ')),
      added: v.number(),
      removed: v.number(),
      files: v.pipe(
        v.array(v.object({ path: v.string(), added: v.nullable(v.number()), removed: v.nullable(v.number()) })),
        v.description(`the first ${MOST_FILES}`),
      ),
      ...textPart,
    }),
    run: changesOf,
  }),
  defineTool({
    name: 'savepoints',
    description: 'Lists the savepoints of a directory. Each is the whole work tree after a round; rewind restores one.',
    effect: 'none',
    input: v.strictObject({ directory, session }),
    output: v.object({
      savepoints: v.pipe(
        v.array(v.object({ id: v.string(), session: v.nullable(v.string()), round: v.number(), at: v.string() })),
        v.description(`the newest ${MOST_SAVEPOINTS}, the newest last`),
      ),
      count: v.number(),
    }),
    async run(given, call) {
      const found = given.session === undefined ? null : await call.places.session(given.directory, given.session)
      const records = found?.records ?? (await call.places.recordsOf(given.directory))
      await using open = await lookAtSavepoints(call.world, records, () => {})
      const all = (await open?.savepoints.list()) ?? []
      const some = all.filter(each => found === null || each.session === found.id)
      const listed = some.slice(-MOST_SAVEPOINTS).map(({ id, session: of, round, at }) => {
        return { id, session: of, round, at: new Date(at).toISOString() }
      })
      return { savepoints: listed, count: some.length }
    },
  }),
]

/** The report of a session, as Markdown. */
export async function reportText({ records, id }: FoundSession, { world }: Pick<Call, 'world'>): Promise<string> {
  const project = await OpenProject.open(world, { directory: records.directory })
  const data = await project.report(id)
  const areGone = await areSavepointsGone(world, records, data, () => {})
  return markdownOf(data, { ...commandsHere(data, records.directory), areSavepointsGone: areGone })
}

interface Given {
  directory?: string | undefined
  session?: string | undefined
}

async function sessionsFor(given: Given, call: Call): Promise<FoundSession[]> {
  if (given.session !== undefined) return [await call.places.session(given.directory, given.session)]
  const records = await call.places.recordsOf(given.directory)
  const found: FoundSession[] = []
  for (const place of await placesAround(records, () => {}))
    for (const id of await newestSessions(place.records, NEWEST))
      found.push({ ...place, records: await call.places.recordsOf(place.records.directory), id })
  return found
}

async function askedIn({ records, worktree, id }: FoundSession, call: Call) {
  const { world } = call
  const named = (name: string) => `${worktree === null ? '' : `${worktree}:`}${name}`
  const asked = await questionsOrNone(records, id, () => {})
  const listed: v.InferOutput<typeof question>[] = asked.map(each => ({
    id: named(questionId(each)),
    directory: records.directory,
    kind: 'question',
    text: clipped(call, each.text, MOST_WORDS),
    options: each.options.map((option, index) => ({ id: String(index + 1), text: clipped(call, option) })),
    assumes: clipped(call, each.assumption, MOST_WORDS),
    answer: each.answer && clipped(call, each.answer.answer, MOST_WORDS),
  }))
  const runner = await askWhoRuns(await lockOfSession(records, id), world.platform, () => {})
  const decision =
    runner === null ? null : ((await readSession(records, id, runner, world).catch(nullIfUserError))?.decision ?? null)
  if (decision === null) return listed
  const text = [decision.title, decision.body ?? ''].filter(each => each !== '').join('\n\n')
  const open = {
    id: named(`${id}/${decision.id}`),
    directory: records.directory,
    kind: 'decision',
    text: clipped(call, text, MOST_WORDS),
    options: decision.choices.map(each => ({ id: each.id, text: clipped(call, each.label) })),
    assumes: decision.default,
    answer: null,
  } as const
  return [...listed, open]
}

async function changesOf(
  {
    round,
    path,
    offset: from,
    ...given
  }: Given & { round?: number | undefined; path?: string | undefined; offset?: number | undefined },
  call: Call,
) {
  const { records, id } = await call.places.session(given.directory, given.session)
  const states =
    round === undefined ? ({ kind: 'ended', session: id } as const) : ({ kind: 'round', session: id, round } as const)
  await using open = new OpenComparison(call.world, records, states, () => {})
  const { files, ...sums } = await open.read(call.signal)
  const { from: before, to: after, count, added, removed } = sums
  const named = path === undefined ? null : (files.find(each => each.path === path) ?? null)
  if (path !== undefined && named === null)
    throw new UserError('CM1015', `${oneLine(path, 300)} does not differ between ${before} and ${after}.`, {
      hint: 'diff without a path lists the files that do.',
    })
  const lines = named === null ? [] : await open.lines(named, call.signal)
  const shown = (named === null ? files.slice(0, MOST_FILES) : [named]).map(each => {
    return { path: each.path, added: each.added, removed: each.removed }
  })
  const text = lines.map(line => `${SIGNS[line.kind]}${line.text}`).join('\n')
  return { from: before, to: after, count, added, removed, files: shown, ...partOf(call, text, from) }
}

const SIGNS = { hunk: '', same: ' ', added: '+', removed: '-', note: '# ' } as const
